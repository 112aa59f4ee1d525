use likewise_core::{BinlogFile, Position, Positions, Server, SourceName};

use super::*;

const UUID: u128 = 7;

fn like(number: u64) -> Change {
    Change { gtid: Gtid { uuid: UUID, tag: String::new(), number }, delta: 1, needs: None }
}

/// A count that includes the transactions up to `number`.
fn count(sum: i64, number: u64) -> Count {
    let position = Position {
        server: Server { uuid: UUID, tag: "".into(), server_id: 1 },
        transaction: number,
        file: BinlogFile::parse("binlog.000001").expect("a file"),
        pos: number,
        row: 0,
        total_order: 1,
    };
    let mut positions = Positions::default();
    positions.advance(&SourceName("likewise".into()), position);
    let next_offset = i64::try_from(number).expect("a number");
    Count {
        generation: 1,
        counted: Counted { sum, ..Counted::default() },
        counted_to: Arc::new(CountedTo { as_of: None, next_offset, positions }),
    }
}

/// The count that somebody who likes the post is answered with, and whether it is stale.
fn told(recent: &Recent) -> (Option<u64>, bool) {
    let OwnCount { count, stale, .. } = recent.own_count(true, true);
    (count, stale)
}

#[test]
fn what_was_written_is_added_until_it_is_counted() {
    let room = Arc::new(Room::of(10));
    let mut recent = Recent::new(room.clone());
    recent.begin(count(40, 4));
    for number in 3..=7 {
        recent.add(like(number));
    }
    assert_eq!(told(&recent), (Some(43), false), "3 and 4 are in the count");
    recent.begin(count(40, 4));
    assert_eq!(told(&recent), (Some(43), false), "the same count again");
    recent.begin(count(45, 6));
    assert_eq!(told(&recent), (Some(46), false), "somebody else's likes are in it too");
    recent.begin(count(40, 4));
    assert_eq!(told(&recent), (Some(46), false), "an older count changes nothing");
    recent.begin(count(46, 7));
    assert_eq!(told(&recent), (Some(46), false));
    assert_eq!(room.left(), 10);
}

/// As while the count store is away: nothing is counted, and every post is written to.
#[test]
fn what_there_is_no_room_for_makes_its_post_stale_until_it_is_counted() {
    let room = Arc::new(Room::of(3));
    let [mut one, mut other] = [(); 2].map(|()| Recent::new(room.clone()));
    one.begin(count(40, 0));
    other.begin(count(80, 0));
    one.add(like(1));
    other.add(like(2));
    other.add(like(3));
    assert_eq!((told(&one), told(&other)), ((Some(41), false), (Some(82), false)));

    other.add(like(4));
    assert_eq!((told(&one), told(&other)), ((Some(41), false), (Some(83), true)));
    assert_eq!(room.left(), 2, "what is forgotten takes no room");
    other.add(like(5));
    other.begin(count(82, 3));
    assert!(told(&other).1, "4 is in neither");
    other.begin(count(83, 4));
    assert_eq!(told(&other), (Some(84), false));

    drop((one, other));
    assert_eq!(room.left(), 3);
}

/// What is taken off may not be in the count: then everybody's count is in doubt.
#[test]
fn a_change_of_what_may_not_be_counted_makes_its_post_stale_until_it_is() {
    let mut recent = Recent::new(Arc::new(Room::of(10)));
    recent.begin(count(3, 1));
    recent.add(Change { delta: -1, needs: Some(Micros(9)), ..like(2) });
    recent.add(like(3));
    assert_eq!(told(&recent), (Some(3), true));
    let mut later = count(4, 1);
    later.counted_to =
        Arc::new(CountedTo { as_of: Some(Micros(9)), ..(*later.counted_to).clone() });
    recent.begin(later);
    assert_eq!(told(&recent), (Some(4), false), "what it took off is in this one");
    recent.add(Change { needs: Some(Micros(99)), ..like(4) });
    recent.begin(count(5, 4));
    assert_eq!(told(&recent), (Some(5), false), "it is counted");
}
