//! The built-in vocabulary: common short English words by their part in a sentence, and what each
//! costs in tokens.
//!
//! Text is made of *units*: a first word without a space before it, a word with one, a full stop,
//! a comma. Tokenizers split text in front of spaces and around marks, so the tokens of a text are
//! the sum over its units. The order of the units is part of the plan's format: a calibration has
//! one digit for each.

use std::sync::LazyLock;

use crate::WorkloadError;

/// A unit's part in a sentence, in the order of the units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentencePart {
    Opener,
    StartDeterminer,
    StartPronoun,
    StartAdverb,
    Stop,
    Comma,
    Determiner,
    Pronoun,
    Adjective,
    Noun,
    Transitive,
    Intransitive,
    Adverb,
    Preposition,
    Conjunction,
}

/// The parts with their words. The marks and the openers have no space before them.
const WORDS: [(SentencePart, &str); 15] = [
    (SentencePart::Opener, "The This That Each Our One Some Every"),
    (
        SentencePart::StartDeterminer,
        "The This That Each Every Our Their His Her My Your Some Any No Another One",
    ),
    (SentencePart::StartPronoun, "We They He She You It"),
    (SentencePart::StartAdverb, "Then Later Soon Today Once Often Perhaps Still Now Here"),
    (SentencePart::Stop, "."),
    (SentencePart::Comma, ","),
    (
        SentencePart::Determiner,
        "the this that each every our their his her my your some any no another one",
    ),
    (SentencePart::Pronoun, "we they he she you it"),
    (
        SentencePart::Adjective,
        "able bad basic big black blue brief bright broad brown busy calm central cheap clean \
         clear close cold common cool correct dark dead deep direct double dry early easy empty \
         equal exact fair false famous fast fat final fine first flat foreign formal free fresh \
         full future general gold good grand gray great green hard heavy high hot human huge ideal \
         inner joint key kind large last late lead legal light likely little local long loose low \
         main major middle mild minor modern narrow native neat new next nice normal odd old only \
         open outer past plain poor present pretty private proper public pure quick quiet rare \
         raw ready real recent red rich right rough round royal safe second senior sharp short \
         sick simple single slow small smart smooth social soft solid special square standard \
         steady strange strong sudden sweet tall thick thin third tiny total tough true upper \
         usual warm weak wet white whole wide wild wise wrong young",
    ),
    (
        SentencePart::Noun,
        "access account action age agent air animal answer area arm army art author baby back bag \
         ball band bank bar base battle beach bed bell bill bird block board boat body book border \
         boss bottle bottom box boy brain branch bridge brother budget bus camera camp capital car \
         card care case cash cat cell center chain chair chance change chapter charge child church \
         circle city class clock club coast code coffee color column company copy corner cost \
         country couple course court cover crew crowd cup current date daughter day deal debt deck \
         degree design desk detail device dinner director doctor dog door dream dress drink driver \
         drop dust duty ear earth edge editor effect egg engine estate event eye face fact family \
         farm father field figure file film finger fire fish flight floor flower food foot force \
         forest form frame friend fruit game garden gas gate girl glass goal group guard guest \
         guide gun hair hall hand hat head health heart height hero hill history hole home horse \
         hospital hotel hour house husband ice image index industry island issue item job judge \
         king kitchen lady lake land language law leader leaf leg lesson letter level library life \
         limit line list machine man manager map market master meal member memory message metal \
         method mile milk mind minister model moment money month moon morning mother motor mouth \
         museum music name nation neck network night north note novel number object ocean office \
         officer oil orange owner page pair paper parent park partner party path patient people \
         person phone picture piece plane planet plant player plot pocket poem poet point police \
         pool post power price prince prison prize problem process product program project purpose \
         quarter queen question race radio rain range rate reader reason record region report \
         result river road rock role roof room root rose route row rule safety salt sample scale \
         scene school science screen sea season seat secret section seed sentence series service \
         shape ship shop shore side sign signal silver sister site size skin sky smile snow society \
         soil soldier son song sound source south space speech speed spirit spring staff stage star \
         state station step stone store storm story stream street student style subject sugar \
         summer sun surface system table target tax teacher team term test text theory thing thread \
         title tool tooth top tower town track trade train travel tree trial truck truth uncle unit \
         valley value version video view village visit voice wall war watch water wave way wealth \
         weapon weather week weight west wheel wife wind window wine winner winter woman wood word \
         worker world writer yard year",
    ),
    (
        SentencePart::Transitive,
        "added asked bought brought built called carried caught chose closed covered crossed drew \
         drove entered felt filled followed forgot found gave got had heard held helped hid hit \
         joined kept knew left lost loved made met moved named needed opened ordered paid passed \
         picked planned played pulled pushed put raised reached read saw saved sent served showed \
         sold studied taught told took touched tried used wanted won wore wrote",
    ),
    (
        SentencePart::Intransitive,
        "acted agreed appeared arrived began broke came changed died failed fell fought grew \
         happened jumped landed lay lived looked remained rested returned rose ran sat slept \
         smiled spoke started stayed stood stopped talked traveled turned waited walked went \
         worked",
    ),
    (
        SentencePart::Adverb,
        "again ago ahead alone already also always away badly carefully clearly early easily even \
         finally forward here however indeed instead just later maybe mostly much nearly never \
         often once only perhaps quickly quietly rather really simply slowly sometimes soon still \
         then there together today twice usually well",
    ),
    (
        SentencePart::Preposition,
        "about above across after against along among around at behind below beside beyond by \
         down for from in inside into near of off on outside over past through to toward under \
         upon with within without",
    ),
    (
        SentencePart::Conjunction,
        "and because before but if or since so that though until when where while",
    ),
];

/// Every unit and its part. A word that has two parts is two units: the order must not depend on
/// how a list happens to be cleaned.
static UNITS: LazyLock<(Vec<&'static str>, Vec<SentencePart>)> = LazyLock::new(|| {
    let mut units: (Vec<&'static str>, Vec<SentencePart>) = (Vec::new(), Vec::new());
    for (part, words) in WORDS {
        for word in words.split_whitespace() {
            let is_bare =
                matches!(part, SentencePart::Opener | SentencePart::Stop | SentencePart::Comma);
            // Built once and kept for the life of the process.
            let unit = if is_bare { word } else { Box::leak(format!(" {word}").into_boxed_str()) };
            units.0.push(unit);
            units.1.push(part);
        }
    }
    units
});

/// A unit that can be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WordUnit {
    pub(crate) text: &'static str,
    pub(crate) cost: u32,
}

/// The vocabulary with the tokens that each unit costs.
#[derive(Debug, Clone)]
pub struct Lexicon {
    parts: [Vec<WordUnit>; WORDS.len()],
    /// Words of one token, to end a text exactly.
    pub(crate) filler: Vec<WordUnit>,
    /// The cheapest words, a power of two of them: the digits of a nonce.
    pub(crate) digits: Vec<WordUnit>,
}

/// A nonce's digit has at most this many values.
const MOST_DIGITS: usize = 256;
/// With fewer words than this, text would repeat itself and nonces would be long.
const LEAST_WORDS: usize = 32;

impl Lexicon {
    /// The units in the order of a calibration's digits.
    pub fn unit_texts() -> &'static [&'static str] {
        &UNITS.0
    }

    /// The units' parts, in the same order.
    pub(crate) fn unit_parts() -> &'static [SentencePart] {
        &UNITS.1
    }

    /// The costs by which each unit is one token: what is assumed before anybody counted.
    pub fn estimated_costs() -> String {
        "1".repeat(Self::unit_texts().len())
    }

    /// Every unit is taken for one token.
    pub fn with_unit_costs() -> Self {
        Self::from_cost_fn(|_| 1)
    }

    /// By the digits of a calibration.
    pub fn from_costs(costs: &str) -> Result<Self, WorkloadError> {
        let units = Self::unit_texts().len();
        let wrong = |message: String| {
            WorkloadError::new(message, "remove `calibration` from the plan to count again")
        };
        let digits: Option<Vec<u32>> = costs.chars().map(|digit| digit.to_digit(10)).collect();
        let Some(digits) = digits.filter(|digits| digits.len() == units) else {
            let length = costs.chars().count();
            return Err(wrong(format!(
                "calibration.costs has {length} characters: expected {units} digits, one for each \
                 unit of the built-in vocabulary"
            )));
        };
        let lexicon = Self::from_cost_fn(|unit| digits.get(unit).copied().unwrap_or(0));
        let usable = lexicon.digits.len();
        if usable < LEAST_WORDS {
            return Err(wrong(format!(
                "calibration.costs leaves {usable} usable words: at least {LEAST_WORDS} are needed"
            )));
        }
        if lexicon.filler.is_empty()
            || lexicon.units_of_part(SentencePart::Opener).iter().all(|u| u.cost != 1)
        {
            return Err(wrong(
                "calibration.costs has no word or no first word of one token: lengths could not \
                 be exact"
                    .to_owned(),
            ));
        }
        Ok(lexicon)
    }

    fn from_cost_fn(cost: impl Fn(usize) -> u32) -> Self {
        let mut parts: [Vec<WordUnit>; WORDS.len()] = Default::default();
        for (index, (text, part)) in UNITS.0.iter().zip(&UNITS.1).enumerate() {
            let unit = WordUnit { text, cost: cost(index) };
            if unit.cost > 0 {
                parts[*part as usize].push(unit);
            }
        }
        let mut words: Vec<WordUnit> = Vec::new();
        for unit in parts[SentencePart::Determiner as usize..].iter().flatten() {
            // The same word may stand in two parts; a digit must not.
            if !words.iter().any(|known| known.text == unit.text) {
                words.push(*unit);
            }
        }
        let filler = words.iter().filter(|unit| unit.cost == 1).copied().collect();
        // A stable sort: equal costs keep the order of the units.
        words.sort_by_key(|unit| unit.cost);
        let digits = words.len().min(MOST_DIGITS);
        words.truncate(digits.checked_ilog2().map_or(0, |bits| 1 << bits));
        Self { parts, filler, digits: words }
    }

    pub(crate) fn units_of_part(&self, part: SentencePart) -> &[WordUnit] {
        &self.parts[part as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn units_are_several_hundred_and_their_order_is_pinned() {
        let units = Lexicon::unit_texts();
        assert_eq!(units.len(), UNIT_COUNT);
        assert_eq!(units[0], "The");
        assert_eq!(units[8], " The");
        // The first and last word of each part: a changed list shifts them.
        assert_eq!((units[40], units[41], units[42]), (".", ",", " the"));
        assert_eq!(units.last(), Some(&" while"));
        let forms: BTreeSet<(&str, usize)> = units
            .iter()
            .zip(Lexicon::unit_parts())
            .map(|(unit, part)| (*unit, *part as usize))
            .collect();
        assert_eq!(forms.len(), units.len(), "a word stands twice in one part");
        assert!(units.iter().all(|unit| unit.is_ascii() && !unit.contains('\n')));
    }
    const UNIT_COUNT: usize = 860;

    #[test]
    fn the_parts_are_in_the_order_of_their_numbers() {
        assert!(WORDS.iter().enumerate().all(|(index, (part, _))| *part as usize == index));
    }

    #[test]
    fn costs_that_cannot_work_are_refused_with_a_reason() {
        let units = Lexicon::unit_texts().len();
        let error = |costs: String| Lexicon::from_costs(&costs).unwrap_err().to_string();
        assert!(error("1121".into()).contains("has 4 characters: expected"));
        assert!(error("x".repeat(units)).contains("digits"));
        assert!(error("2".repeat(units)).contains("no word or no first word of one token"));
        assert!(error("0".repeat(units)).contains("leaves 0 usable words"));
        assert!(Lexicon::from_costs(&Lexicon::estimated_costs()).is_ok());
    }

    #[test]
    fn digits_are_the_cheapest_words_and_differ() {
        let lexicon = Lexicon::with_unit_costs();
        let words: BTreeSet<&str> = lexicon.digits.iter().map(|unit| unit.text).collect();
        assert_eq!(words.len(), 256);
    }
}
