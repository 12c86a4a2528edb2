//! How two records of one key are merged, according to the table's properties.
//!
//! The records of a log are merged first, in the order of their writes; the outcome is merged with the row of the base
//! file. Hudi 0.x has a rule for each of the two steps, and so have its payload classes. Hudi 1.x has one for both: its
//! merge mode. A table is read by the rules of the Hudi that its version belongs to.
//!
//! | table | of two log records | of a base row and the logs' outcome |
//! |---|---|---|
//! | 1.x: commit time | the later | the later |
//! | 1.x: event time | the greater ordering value, the later of equal ones | the same |
//! | 0.x: `OverwriteWithLatest..`, `AWSDms..` | the greater ordering value; after a delete, the later | the logs' |
//! | 0.x: `Default..`, `EventTime..` | the same | the greater ordering value |
//! | `PartialUpdate..` | the same, with the other's value where it is null | the same |
//! | `OverwriteNonDefaults..` | 0.x: the greater; 1.x: as for the base | the logs', with the base row's value where it is a default |
//! | `Postgres..` | the greater | the greater, with the other's value where it is not available |

use coldframe_core::{Error, Result};

use crate::data::properties::Properties;

/// The values that the winner of two records takes from the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Nothing.
    None,
    /// The values of columns that are null, or have the schema's default.
    Defaults,
    /// The values of text and bytes that the source did not send.
    Unavailable,
}

/// One of the two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Whether ordering values decide; otherwise the later record wins.
    pub by_order: bool,
    /// Whether the earlier of two records with equal ordering values wins.
    pub first_wins: bool,
    /// What the winner takes from the other.
    pub fill: Fill,
}

impl Step {
    const LATER: Self = Self { by_order: false, first_wins: false, fill: Fill::None };
    const GREATER: Self = Self { by_order: true, first_wins: false, fill: Fill::None };

    const fn fill(self, fill: Fill) -> Self {
        Self { fill, ..self }
    }

    const fn first(self) -> Self {
        Self { first_wins: true, ..self }
    }
}

/// The rules of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// For two records of the logs.
    pub logs: Step,
    /// For a row of the base file and the merged log records of its key.
    pub base: Step,
    /// The ordering columns.
    pub ordering: Vec<String>,
    /// A column and the value in it that makes a record a delete.
    pub marker: Option<(String, String)>,
    /// Whether a delete in the logs deletes the base row whatever its ordering value is.
    pub deletes_win: bool,
    /// Whether a row that is marked as deleted deletes the base row whatever its ordering value is.
    pub flags_win: bool,
    /// Whether a payload class merges, and no merge mode: then a row that keeps its values takes the meta columns of the
    /// later record, and nothing for values that were not sent.
    pub by_payload: bool,
    /// The text in place of a value that was not sent.
    pub unavailable: String,
}

/// The version of Hudi whose rules apply to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// That of Hudi 0.x.
    Old,
    /// That of Hudi 1.x.
    New,
}

/// The text that Debezium sends for a value that it does not have.
const UNAVAILABLE: &str = "__debezium_unavailable_value";

impl Rules {
    /// The rules of a table whose rows are read without logs.
    pub(crate) fn none() -> Self {
        Self {
            logs: Step::LATER,
            base: Step::LATER,
            ordering: Vec::new(),
            marker: None,
            deletes_win: false,
            flags_win: false,
            by_payload: false,
            unavailable: String::new(),
        }
    }

    /// The rules of a table.
    pub(crate) fn new(properties: &Properties, reading: Reading) -> Result<Self> {
        let ordering = match properties.list("hoodie.table.ordering.fields") {
            none if none.is_empty() => properties.list("hoodie.table.precombine.field"),
            fields => fields,
        };
        let payload =
            properties.first(&["hoodie.compaction.payload.class", "hoodie.table.legacy.payload.class"]);
        let mode = properties.get("hoodie.record.merge.mode");
        let mut rules = Self {
            logs: Step::LATER,
            base: Step::LATER,
            marker: marker(properties),
            deletes_win: reading == Reading::Old,
            flags_win: false,
            by_payload: reading == Reading::Old,
            unavailable: properties
                .get("hoodie.record.merge.property.hoodie.payload.unavailable.value")
                .or(properties
                    .get("hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value"))
                .unwrap_or(UNAVAILABLE)
                .to_owned(),
            ordering,
        };
        let version = properties.number("hoodie.table.version").unwrap_or(0);
        match (reading, mode) {
            (Reading::New, Some("COMMIT_TIME_ORDERING")) => {}
            (Reading::New, Some("EVENT_TIME_ORDERING")) => rules.by_order(),
            // Such a table has not been merged by a mode of its own.
            (Reading::New, Some("CUSTOM") | None) => rules.of_payload_now(payload, properties)?,
            (Reading::New, Some(other)) => {
                return Err(Error::unsupported(format!("merge mode {other:?} of a Hudi table")));
            }
            (Reading::Old, _) => rules.of_payload_then(payload)?,
        }
        if version >= 9 {
            let fill = match properties.get("hoodie.table.partial.update.mode") {
                None | Some("NONE") => Fill::None,
                Some("IGNORE_DEFAULTS") => Fill::Defaults,
                Some("FILL_UNAVAILABLE") => Fill::Unavailable,
                Some(other) => {
                    return Err(Error::unsupported(format!("partial update mode {other:?} of a Hudi table")));
                }
            };
            (rules.logs.fill, rules.base.fill) = (fill, fill);
        }
        Ok(rules)
    }

    fn by_order(&mut self) {
        (self.logs, self.base) = (Step::GREATER, Step::GREATER);
    }

    /// Hudi 0.x: the methods `preCombine` and `combineAndGetUpdateValue` of the payload class.
    fn of_payload_then(&mut self, payload: Option<&str>) -> Result<()> {
        self.logs = Step::GREATER;
        match class(payload) {
            None | Some("OverwriteWithLatestAvroPayload") => self.marker = None,
            Some("HoodieAvroPayload") => (self.logs, self.marker) = (Step::LATER, None),
            Some("DefaultHoodieRecordPayload") => self.base = Step::GREATER,
            Some("EventTimeAvroPayload") => {
                (self.base, self.flags_win, self.marker) = (Step::GREATER, true, None);
            }
            Some("FirstValueAvroPayload") => {
                (self.logs, self.base) = (Step::GREATER.first(), Step::GREATER.first());
            }
            Some("PartialUpdateAvroPayload") => {
                let step = Step::GREATER.fill(Fill::Defaults);
                (self.logs, self.base, self.marker) = (step, step, None);
            }
            Some("OverwriteNonDefaultsWithLatestAvroPayload") => {
                (self.base, self.marker) = (Step::LATER.fill(Fill::Defaults), None);
            }
            Some("AWSDmsAvroPayload") => self.marker = Some(("Op".into(), "D".into())),
            Some("PostgresDebeziumAvroPayload") => {
                self.base = Step::GREATER.fill(Fill::Unavailable);
                self.marker = debezium();
            }
            Some("MySqlDebeziumAvroPayload") => {
                (self.base, self.marker) = (Step::GREATER.first(), debezium());
            }
            Some(other) => return Err(refused(other)),
        }
        Ok(())
    }

    /// Hudi 1.x: the rules that replace a payload class.
    fn of_payload_now(&mut self, payload: Option<&str>, properties: &Properties) -> Result<()> {
        self.by_payload = payload.is_some();
        match class(payload) {
            None => {
                // The default of 1.x: event time, if there is an ordering column.
                let strategy = properties
                    .first(&["hoodie.record.merge.strategy.id", "hoodie.compaction.record.merger.strategy"]);
                match strategy {
                    Some(COMMIT_TIME) => {}
                    _ if !self.ordering.is_empty() => self.by_order(),
                    _ => {}
                }
            }
            Some("OverwriteWithLatestAvroPayload" | "HoodieAvroPayload") => self.marker = None,
            Some("DefaultHoodieRecordPayload" | "EventTimeAvroPayload") => self.by_order(),
            Some("FirstValueAvroPayload") => {
                (self.logs, self.base) = (Step::GREATER.first(), Step::GREATER.first());
            }
            Some("PartialUpdateAvroPayload") => {
                let step = Step::GREATER.fill(Fill::Defaults);
                (self.logs, self.base) = (step, step);
            }
            Some("OverwriteNonDefaultsWithLatestAvroPayload") => {
                let step = Step::LATER.fill(Fill::Defaults);
                (self.logs, self.base) = (step, step);
            }
            Some("AWSDmsAvroPayload") => self.marker = Some(("Op".into(), "D".into())),
            Some("PostgresDebeziumAvroPayload") => {
                let step = Step::GREATER.fill(Fill::Unavailable);
                (self.logs, self.base, self.marker) = (step, step, debezium());
            }
            Some("MySqlDebeziumAvroPayload") => {
                self.by_order();
                self.marker = debezium();
            }
            Some(other) => return Err(refused(other)),
        }
        Ok(())
    }

    /// Whether ordering values are compared anywhere.
    pub(crate) fn needs_order(&self) -> bool {
        self.logs.by_order || self.base.by_order
    }
}

/// The merge strategy of tables in which the later of two records wins.
const COMMIT_TIME: &str = "ce9acb64-bde0-424c-9b91-f6ebba25356d";

/// The name of a class of Hudi's own without its package; others stay whole.
fn class(payload: Option<&str>) -> Option<&str> {
    let payload = payload?;
    let own = payload.strip_prefix("org.apache.hudi.common.model.");
    Some(own.map_or(payload, |name| name.strip_prefix("debezium.").unwrap_or(name)))
}

fn refused(class: &str) -> Error {
    Error::unsupported(format!(
        "the payload class {class} of a Hudi table, which decides how its logs are merged"
    ))
}

fn debezium() -> Option<(String, String)> {
    Some(("_change_operation_type".into(), "d".into()))
}

/// The marker of deletes that the table names.
fn marker(properties: &Properties) -> Option<(String, String)> {
    let of = |key: &str| {
        let merge = format!("hoodie.record.merge.property.{key}");
        properties.get(key).or(properties.get(&merge)).map(str::to_owned)
    };
    Some((of("hoodie.payload.delete.field")?, of("hoodie.payload.delete.marker")?))
}
