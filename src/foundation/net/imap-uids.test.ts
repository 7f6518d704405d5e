import { describe, expect, test } from "bun:test";
import { ImapFailure } from "./imap-failure.ts";
import { type UidFolder, UidSearch, UIDS_SEARCHED_MAX } from "./imap-uids.ts";

/** A folder that counts what it is asked for. */
class CountedFolder implements UidFolder {
  commands = 0;
  /** The most UIDs of one response. */
  largest = 0;
  onCommand: () => void = () => undefined;

  constructor(public uids: number[]) {}

  messages(): number {
    return this.uids.length;
  }

  async search(from: number, to: number | null): Promise<readonly number[]> {
    const last = this.uids.at(-1) ?? 0;
    const found = this.#count(this.uids.filter((uid) => uid >= from && uid <= (to ?? last)));
    // `n:*` has the last message in any case.
    return to === null && found.length === 0 && last > 0 ? [last] : found;
  }

  async uidsAt(from: number, to: number): Promise<ReadonlyMap<number, number>> {
    const found = this.#count(this.uids.slice(from - 1, to));
    return new Map(found.map((uid, at) => [from + at, uid]));
  }

  async refresh(): Promise<void> {
    this.#count([]);
  }

  #count(uids: number[]): number[] {
    this.commands += 1;
    this.largest = Math.max(this.largest, uids.length);
    this.onCommand();
    return uids;
  }
}

const spread = (count: number, step: number): number[] => Array.from({ length: count }, (_, at) => (at + 1) * step);

/** Everything above a UID, in steps of `limit`. */
const walk = async (search: UidSearch, from: number, limit: number): Promise<number[]> => {
  const all: number[] = [];
  for (let last = from; ;) {
    const uids = await search.after(last, limit);
    if (uids.length === 0) return all;
    all.push(...uids);
    last = uids.at(-1) ?? last;
  }
};

describe("all messages are found in order, each once, in few commands with short responses", () => {
  const cases: ReadonlyArray<readonly [string, readonly number[], number, number]> = [
    ["none", [], 0, 1],
    ["three", [4, 9, 10], 0, 2],
    ["the largest folder that is searched at once", spread(UIDS_SEARCHED_MAX, 400_000), 0, 2],
    ["a dense folder of 200,000", spread(200_000, 1), 0, 25],
    ["12,000 messages over all possible UIDs", spread(12_000, 350_000), 0, 450],
    ["the last 10 of them", spread(12_000, 350_000), 11_990 * 350_000, 40],
    ["two dense parts with a gap of four billion", [...spread(11_000, 1), 4e9 + 1, 4e9 + 2], 0, 30],
  ];
  test.each(cases)("%s", async (_, uids, from, commandsMax) => {
    const folder = new CountedFolder([...uids]);
    expect(await walk(new UidSearch(folder), from, 100)).toEqual(uids.filter((uid) => uid > from));
    expect(folder.largest).toBeLessThanOrEqual(UIDS_SEARCHED_MAX);
    expect(folder.commands).toBeLessThanOrEqual(commandsMax);
  });
});

test("nothing new in a large folder takes two commands", async () => {
  const folder = new CountedFolder(spread(900_000, 1));
  expect(await new UidSearch(folder).after(900_000, 100)).toEqual([]);
  expect([folder.commands, folder.largest]).toEqual([2, 1]);
});

test("a message that came later is found although others were found before", async () => {
  const folder = new CountedFolder([1, 2]);
  const search = new UidSearch(folder);
  expect(await search.after(0, 1)).toEqual([1]);
  folder.uids.push(3);
  expect(await walk(search, 1, 1)).toEqual([2, 3]);
  expect(await walk(search, 0, 5)).toEqual([1, 2, 3]);
});

test("UIDs outside the window are ignored, in any order and twice", async () => {
  const folder = new CountedFolder([1, 2, 3]);
  folder.search = async () => [3, 9.5, 2, 3, -1, 2 ** 32, Number.NaN, 1];
  expect(await new UidSearch(folder).after(1, 10)).toEqual([2, 3]);
});

describe("while others delete messages", () => {
  const deleting = (times: number): CountedFolder => {
    const folder = new CountedFolder([...spread(20_000, 1), ...spread(20_000, 1).map((n) => 4e9 + n)]);
    let left = times;
    folder.onCommand = () => {
      // The search in the middle of the gap is shifted by as many as vanish before it.
      if (left > 0 && folder.commands > 1) folder.uids.splice(0, 7);
      left -= 1;
    };
    return folder;
  };

  test("no message is passed over", async () => {
    const folder = deleting(17);
    expect(await new UidSearch(folder).after(20_000, 3)).toEqual([4e9 + 1, 4e9 + 2, 4e9 + 3]);
  });

  test("without end, the search fails instead of guessing", async () => {
    const folder = deleting(Infinity);
    const { kind, message } = await new UidSearch(folder).after(20_000, 3).then(
      () => new ImapFailure("settings", "It did not fail."),
      (error) => (error instanceof ImapFailure ? error : Promise.reject(error)),
    );
    expect([kind, message]).toEqual(["broken", expect.stringContaining("kept changing")]);
    expect(folder.commands).toBeLessThan(120);
  });
});
