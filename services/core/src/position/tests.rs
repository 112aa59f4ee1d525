use super::*;

fn at(transaction: u64, file: &str, pos: u64, row: u64, total_order: u64) -> Position {
    Position {
        server: Server { uuid: 1, tag: "".into(), server_id: 1 },
        transaction,
        file: BinlogFile::parse(file).expect("a binlog file"),
        pos,
        row,
        total_order,
    }
}

#[test]
fn later_transactions_are_new_also_across_files_and_gaps_in_numbers() {
    let last = at(11, "binlog.000009", 500, 2, 3);
    assert_eq!(at(12, "binlog.000009", 900, 0, 1).novelty(&last), Novelty::New);
    assert_eq!(at(900, "binlog.000010", 4, 0, 1).novelty(&last), Novelty::New);
}

#[test]
fn a_transaction_sent_again_repeats_up_to_the_last_row_counted() {
    let last = at(11, "binlog.000001", 500, 4, 5);
    assert_eq!(at(11, "binlog.000001", 500, 0, 1).novelty(&last), Novelty::Repeat);
    assert_eq!(at(11, "binlog.000001", 500, 4, 5).novelty(&last), Novelty::Repeat);
    assert_eq!(at(11, "binlog.000001", 500, 5, 6).novelty(&last), Novelty::New);
    assert_eq!(at(11, "binlog.000001", 700, 0, 7).novelty(&last), Novelty::New);
    assert_eq!(at(10, "binlog.000001", 100, 0, 1).novelty(&last), Novelty::Repeat);
}

#[test]
fn two_changes_of_one_row_are_told_apart_by_their_order() {
    let removed = at(11, "binlog.000001", 500, 0, 1);
    let created = at(11, "binlog.000001", 500, 0, 2);
    assert_eq!(created.novelty(&removed), Novelty::New);
    assert_eq!(removed.novelty(&created), Novelty::Repeat);
}

#[test]
fn contradicting_positions_are_never_guessed() {
    let last = at(11, "binlog.000002", 500, 4, 5);
    let contradictions = [
        at(11, "binlog.000003", 500, 4, 5),
        at(11, "binlog.000002", 500, 0, 9),
        at(11, "binlog.000002", 900, 0, 2),
        at(10, "binlog.000002", 900, 0, 1),
        at(10, "other.000001", 100, 0, 1),
    ];
    for position in contradictions {
        assert_eq!(position.novelty(&last), Novelty::CannotTell, "{position:?}");
    }
}

#[test]
fn servers_tags_and_sources_have_positions_of_their_own() {
    let likewise = SourceName("likewise".into());
    let mut positions = Positions::default();
    let first = at(11, "binlog.000001", 500, 4, 5);
    positions.advance(&likewise, first.clone());

    let mut failed_over = at(3, "binlog.000001", 40, 0, 1);
    failed_over.server.uuid = 2;
    assert_eq!(positions.novelty(&likewise, &failed_over), Novelty::New);
    positions.advance(&likewise, failed_over.clone());
    assert_eq!(positions.novelty(&likewise, &failed_over), Novelty::Repeat);
    assert_eq!(positions.novelty(&likewise, &first), Novelty::Repeat);

    let mut tagged = first.clone();
    tagged.server.tag = "import".into();
    assert_eq!(positions.novelty(&likewise, &tagged), Novelty::New);
    assert_eq!(positions.novelty(&SourceName("other".into()), &first), Novelty::New);
}
