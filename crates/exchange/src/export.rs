//! A run in its folder, in the shapes of other programs.

use std::io::Write;

use goodput_model::{Plan, RequestRecord, SourceTool};
use goodput_record::RunFolder;
use goodput_stats::{Each, Summary};

use crate::aiperf::write_aiperf;
use crate::chunks::chunks_parquet;
use crate::converted::ConvertedRun;
use crate::error::ExchangeError;
use crate::requests::{RequestRow, requests_csv, requests_parquet};
use crate::server::server_parquet;
use crate::sglang::write_sglang;
use crate::vllm::write_vllm;

/// A shape that is one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileShape {
    /// A table of the requests.
    Csv,
    /// As vLLM writes its results.
    Vllm,
    /// As SGLang does.
    Sglang,
    /// As AIPerf does.
    Aiperf,
}

impl FileShape {
    /// The shape nearest to the files of a tool: that of vLLM where we do not write the tool's own.
    pub fn from_tool(tool: SourceTool) -> Self {
        match tool {
            SourceTool::Sglang => Self::Sglang,
            SourceTool::Aiperf | SourceTool::GenaiPerf => Self::Aiperf,
            SourceTool::VllmPython
            | SourceTool::VllmRust
            | SourceTool::Guidellm
            | SourceTool::Goodput => Self::Vllm,
        }
    }
}

/// A table of its own: requests, chunks and the server lie next to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParquetTable {
    /// Every request.
    Requests,
    /// Every chunk of every answer.
    Chunks,
    /// What the server said of itself.
    Server,
}

impl ParquetTable {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Requests, Self::Chunks, Self::Server];

    /// What its file is called.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Requests => "requests.parquet",
            Self::Chunks => "chunks.parquet",
            Self::Server => "server.parquet",
        }
    }
}

/// A run whose records can be written in another shape.
pub struct RunExport<'a> {
    run: ConvertedRun<'a>,
    folder: &'a RunFolder,
    each: Each,
}

impl<'a> RunExport<'a> {
    /// A run, its numbers, and the folder that holds its records.
    pub fn new(plan: &'a Plan, summary: &'a Summary, folder: &'a RunFolder) -> Self {
        let samples: Vec<_> = folder.read_samples().collect();
        let each = Each::new(plan, summary, &samples, folder.read_judgements());
        Self { run: ConvertedRun { plan, summary }, folder, each }
    }

    /// Writes one file; with every request where `detailed` and the shape knows both forms. What its reader
    /// should know and cannot see in it comes back.
    pub fn write(
        &self,
        out: &mut (dyn Write + Send),
        shape: FileShape,
        detailed: bool,
    ) -> Result<Vec<String>, ExchangeError> {
        let (run, records) = (&self.run, || self.records());
        match shape {
            FileShape::Vllm => write_vllm(out, run, &records, detailed),
            FileShape::Sglang => write_sglang(out, run, &records, detailed),
            FileShape::Aiperf => write_aiperf(out, run, records()),
            FileShape::Csv => {
                requests_csv(out, self.rows())?;
                Ok(run.warnings())
            }
        }
    }

    /// Writes one of several tables.
    pub fn write_table(
        &self,
        out: &mut (dyn Write + Send),
        table: ParquetTable,
    ) -> Result<(), ExchangeError> {
        match table {
            ParquetTable::Requests => requests_parquet(out, &self.run, self.rows()),
            ParquetTable::Chunks => chunks_parquet(out, &self.run, self.records()),
            ParquetTable::Server => server_parquet(out, &self.run, self.folder.read_samples()),
        }
    }

    /// What speaks against every figure of the run, whatever its shape.
    pub fn warnings(&self) -> Vec<String> {
        self.run.warnings()
    }

    fn rows(&self) -> impl Iterator<Item = RequestRow> {
        self.records().map(|record| RequestRow::from_record(record, &self.each))
    }

    /// Every request, with what was found out after the run. The log was opened once already: one that
    /// vanishes in between reads as empty.
    fn records(&self) -> impl Iterator<Item = RequestRecord> {
        self.folder.read_records().into_iter().flatten().map(|mut record| {
            self.each.complete(&mut record);
            record
        })
    }
}
