use std::fmt::Write;

use super::*;

/// As DCGM's exporter writes it, shortened.
fn dcgm(power: f64, energy_mj: u64, reasons: u64) -> String {
    let mut page = String::new();
    for gpu in 0..2 {
        let labels = format!(
            "gpu=\"{gpu}\",UUID=\"GPU-{gpu}\",pci_bus_id=\"0\",device=\"nvidia{gpu}\",\
             modelName=\"NVIDIA H200\",Hostname=\"node\",DCGM_FI_DRIVER_VERSION=\"570\""
        );
        for (name, value) in [
            ("DEV_SM_CLOCK", 1980.0),
            ("DEV_MEM_CLOCK", 3201.0),
            ("DEV_MEMORY_TEMP", 9_223_372_036_854_775_794.0),
            ("DEV_GPU_TEMP", 41.0 + f64::from(gpu)),
            ("DEV_POWER_USAGE", power),
            ("DEV_TOTAL_ENERGY_CONSUMPTION", energy_mj as f64),
            ("DEV_GPU_UTIL", 97.0),
            ("DEV_FB_FREE", 1024.0),
            ("DEV_FB_USED", 2048.0),
            ("DEV_FB_RESERVED", 512.0),
            ("DEV_CLOCK_THROTTLE_REASONS", reasons as f64),
            ("PROF_GR_ENGINE_ACTIVE", 0.5),
            ("PROF_SM_ACTIVE", 0.9),
            ("PROF_PIPE_TENSOR_ACTIVE", 0.25),
            ("PROF_DRAM_ACTIVE", 0.75),
        ] {
            writeln!(page, "DCGM_FI_{name}{{{labels}}} {value}").unwrap();
        }
    }
    page
}

#[test]
fn dcgm_is_understood() {
    let mut exporter = GpuExporter::default();
    let samples = exporter.read(0, &dcgm(650.5, 123_456_789, 0x1 | 0x4), Nanos(7));
    assert_eq!(samples.len(), 2);
    let expected = GpuSample {
        at: Nanos(7),
        gpu: 1,
        busy: Some(0.97),
        sm_active: Some(0.9),
        tensor_active: Some(0.25),
        dram_active: Some(0.75),
        memory_used: Some(2_147_483_648.0),
        power_w: Some(650.5),
        energy_j: Some(123_456.789),
        sm_clock_mhz: Some(1980.0),
        memory_clock_mhz: Some(3201.0),
        temperature_c: Some(42.0),
        throttled: Some(vec!["power".to_owned()]),
    };
    assert_eq!(samples[1], expected);
    assert_eq!((samples[0].gpu, samples[0].temperature_c), (0, Some(41.0)));
    let facts = exporter.facts();
    assert_eq!(facts.len(), 2);
    assert_eq!((facts[1].name.as_str(), facts[1].uuid.as_str()), ("NVIDIA H200", "GPU-1"));
    assert_eq!(facts[1].memory_bytes, Some(3584.0 * 1_048_576.0));
    // The same GPUs keep their places, and another page without UUIDs gets its own.
    assert_eq!(exporter.read(0, &dcgm(1.0, 1, 0), Nanos(8))[1].gpu, 1);
    let bare = "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 250\n";
    assert_eq!(exporter.read(1, bare, Nanos(9))[0].gpu, 2);
    let again = exporter.read(2, bare, Nanos(9));
    assert_eq!((again[0].gpu, again[0].busy, again[0].power_w), (3, Some(1.0), None));
    // What DCGM says where it knows nothing, and no numbers.
    for value in ["9223372036854775794", "140737488355328", "NaN", "+Inf", "-1"] {
        let page = format!("DCGM_FI_DEV_POWER_USAGE{{gpu=\"0\",UUID=\"GPU-0\"}} {value}\n");
        assert_eq!(exporter.read(0, &page, Nanos(9)), [], "{value}");
    }
    assert_eq!(exporter.read(0, "up 1\nDCGM_FI_DEV_GPU_UTIL\n", Nanos(9)), []);
}

#[test]
fn reasons_are_words() {
    let words = |bits| names::throttle_reasons(bits).join(" ");
    assert_eq!((words(0), words(1)), (String::new(), String::new()));
    assert_eq!(words(0x4 | 0x8 | 0x20 | 0x40), "power thermal hw_slowdown");
    assert_eq!(
        words(0x2 | 0x10 | 0x80 | 0x100),
        "power_brake sync_boost app_clocks display_clocks"
    );
}

#[test]
fn parts_of_one_gpu_share_its_power() {
    let mut page = String::new();
    for (part, used) in [("1", 10.0), ("2", 20.0)] {
        let labels = format!(
            "gpu=\"0\",uuid=\"GPU-0\",modelName=\"NVIDIA A100\",GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"{part}\""
        );
        writeln!(
            page,
            "DCGM_FI_DEV_POWER_USAGE{{{labels}}} 300\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{labels}}} 5000\n\
             DCGM_FI_DEV_FB_USED{{{labels}}} {used}\nDCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} 0.5"
        )
        .unwrap();
    }
    // A second pod on the first part: the same figures once more.
    page += "DCGM_FI_DEV_FB_USED{gpu=\"0\",uuid=\"GPU-0\",GPU_I_ID=\"1\",pod=\"b\"} 10\n";
    let mut exporter = GpuExporter::default();
    let samples = exporter.read(0, &page, Nanos(1));
    let power: Vec<_> = samples.iter().map(|sample| (sample.power_w, sample.energy_j)).collect();
    assert_eq!(power, [(Some(300.0), Some(5.0)), (None, None)]);
    let used: Vec<_> = samples.iter().map(|sample| sample.memory_used).collect();
    assert_eq!(used, [Some(10.0 * 1_048_576.0), Some(20.0 * 1_048_576.0)]);
    assert_eq!(samples[1].busy, Some(0.5));
    assert_eq!(exporter.facts()[1].name, "NVIDIA A100 MIG 1g.10gb");
    assert_eq!(exporter.facts()[1].uuid, "GPU-0/2");
    let boards: Vec<_> = exporter.facts().iter().map(|facts| facts.board.as_str()).collect();
    assert_eq!(boards, ["GPU-0", "GPU-0"]);
}

#[test]
fn amd_and_triton_are_understood() {
    let page = |hot: f64, time: f64, prefix: &str| {
        let labels = "card_model=\"AMD Instinct MI300X\",gpu_compute_partition_type=\"spx\",\
                      gpu_id=\"0\",gpu_partition_id=\"0\",hostname=\"n\",serial_number=\"S1\"";
        let mut page = String::new();
        for (name, more, value) in [
            ("gpu_package_power", "", 748.0),
            ("gpu_energy_consumed", "", 1.4e17),
            ("gpu_gfx_activity", "", 88.0),
            ("gpu_umc_activity", "", 40.0),
            ("gpu_used_vram", "", 183_265.0),
            ("gpu_total_vram", "", 196_592.0),
            ("gpu_junction_temperature", "", 76.0),
            ("gpu_clock", ",clock_type=\"system\",clock_index=\"0\"", 2100.0),
            ("gpu_clock", ",clock_type=\"GPU_CLOCK_TYPE_SYSTEM\",clock_index=\"1\"", 1900.0),
            ("gpu_clock", ",clock_type=\"memory\",clock_index=\"8\"", 1300.0),
            ("gpu_violation_ppt_residency_percentage", "", if hot > 100.0 { 50.0 } else { 49.0 }),
            ("gpu_violation_hbm_thermal_residency_accumulated", "", hot),
            ("gpu_violation_processor_hot_residency_percentage", "", f64::from(u32::MAX).powi(2)),
            ("gpu_violation_current_accumulated_counter", "", time),
            ("gpu_violation_low_utilization_percentage", "", 50.0),
        ] {
            writeln!(page, "{prefix}{name}{{{labels}{more}}} {value}").unwrap();
        }
        page
    };
    let mut exporter = GpuExporter::default();
    for prefix in ["", "amd_"] {
        let sample = exporter.read(0, &page(100.0, 1000.0, prefix), Nanos(1)).remove(0);
        assert_eq!((sample.gpu, sample.busy, sample.dram_active), (0, Some(0.88), Some(0.4)));
        assert_eq!((sample.power_w, sample.energy_j), (Some(748.0), Some(1.4e11)));
        assert_eq!((sample.sm_clock_mhz, sample.memory_clock_mhz), (Some(2000.0), Some(1300.0)));
        assert_eq!(sample.memory_used, Some(183_265.0 * 1_048_576.0));
        assert_eq!((sample.temperature_c, sample.throttled), (Some(76.0), Some(Vec::new())));
    }
    // Of ten more units of time, heat took four, and then five of ten.
    let mut words = |hot: f64, time: f64| {
        let sample = exporter.read(0, &page(hot, time, ""), Nanos(2)).remove(0);
        sample.throttled.unwrap().join(" ")
    };
    assert_eq!(words(104.0, 1010.0), "power");
    assert_eq!(words(109.0, 1020.0), "power thermal");
    assert_eq!(words(109.0, 1020.0), "power", "the same page again");
    assert_eq!(exporter.facts()[0].name, "AMD Instinct MI300X");
    assert_eq!(exporter.facts()[0].memory_bytes, Some(196_592.0 * 1_048_576.0));
    // Parts of a chip: the first has the meter, wherever it stands on the page.
    let parts = "gpu_gfx_activity{gpu_id=\"1\",gpu_partition_id=\"1\",serial_number=\"S2\"} 5\n\
                 gpu_package_power{gpu_id=\"1\",gpu_partition_id=\"1\",serial_number=\"S2\"} 0\n\
                 gpu_package_power{gpu_id=\"1\",gpu_partition_id=\"0\",serial_number=\"S2\"} 500\n";
    let samples = GpuExporter::default().read(0, parts, Nanos(1));
    let power: Vec<_> = samples.iter().map(|sample| (sample.busy, sample.power_w)).collect();
    assert_eq!(power, [(Some(0.05), None), (None, Some(500.0))]);
    let triton = "nv_gpu_utilization{gpu_uuid=\"GPU-9\"} 0.5\nnv_gpu_power_usage{gpu_uuid=\"GPU-9\"} 90\n\
                  nv_gpu_memory_used_bytes{gpu_uuid=\"GPU-9\"} 4096\nnv_energy_consumption{gpu_uuid=\"GPU-9\"} 12.5\n\
                  nv_gpu_power_limit{gpu_uuid=\"GPU-9\"} 700\n";
    let sample = exporter.read(1, triton, Nanos(3)).remove(0);
    assert_eq!((sample.gpu, sample.busy, sample.energy_j), (1, Some(0.5), Some(12.5)));
    assert_eq!(exporter.facts()[1].power_limit_w, Some(700.0));
}
