import { describe, expect, test } from "bun:test";
import {
  IMAP_REPLY_LIMITS,
  ImapReplyLimits,
  type UidFolder,
  UidSearch,
  UIDS_SEARCHED_MAX,
} from "./imap-reply-limits.ts";
import { ImapFailure } from "./imap-client.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** What the limits say to a text in chunks of a size, and the chunk at which they say it. */
const take = (text: string, chunkBytes = 65_536) => {
  const limits = new ImapReplyLimits();
  limits.begin("read messages");
  const all = bytes(text);
  for (let at = 0; at < all.length; at += chunkBytes) {
    const excess = limits.take(all.subarray(at, at + chunkBytes));
    if (excess !== null) return { excess, atByte: at };
  }
  return null;
};

const uids = (count: number): string => Array.from({ length: count }, (_, n) => 4_000_000_000 + n).join(" ");
const message = (n: number, size: number): string =>
  `* ${n} FETCH (UID ${n} RFC822.SIZE ${size} INTERNALDATE "01-Jan-2026 10:00:00 +0000" BODY[]<0> {${size}}\r\n${" (\r\n".repeat(size / 4)})\r\n`;

describe("what the service asks for is within the limits", () => {
  test.each([
    ["10,000 UIDs", `* SEARCH ${uids(10_000)}\r\nA1 OK done\r\n`],
    ["100 messages of 80 kB", Array.from({ length: 100 }, (_, n) => message(n + 1, 80_000)).join("")],
    ["one message of 25 MiB", message(1, 25 * 1024 * 1024)],
    ["a literal of nothing", "* LIST () NIL {0}\r\n\r\n"],
    ["a thousand folders", '* LIST (\\HasNoChildren) "/" "Reports"\r\n'.repeat(1_000)],
  ])("%s", (_, text) => expect(take(text)).toBeNull());
});

describe("what floods is named, at the limit and not after it", () => {
  test.each([
    ["responses", "2,000", "* 7 EXISTS\r\n".repeat(500_000), 26_000],
    ["words", "20,000", `* SEARCH ${uids(900_000)}\r\n`, 230_000],
    ["words", "20,000", "(".repeat(1_000_000), 66_000],
    ["literals", "1,000", `* 1 FETCH (${"X {0}\r\n ".repeat(500_000)}`, 66_000],
    ["bytes of protocol", "1,048,576", "x".repeat(4_000_000), 1_050_000],
    ["bytes", "67,108,864", `* 1 FETCH (BODY[] {100000000}\r\n${"x".repeat(70_000_000)}`, 67_200_000],
  ])("%s: more than %s", (unit, limit, text, atByteMax) => {
    const { excess, atByte } = take(text) ?? { excess: null, atByte: 0 };
    expect(excess).toBe(`The server sent more than ${limit} ${unit} when it was to read messages.`);
    expect(atByte).toBeLessThan(atByteMax);
  });
});

test("each command begins anew", () => {
  const limits = new ImapReplyLimits();
  for (let command = 0; command < 10; command += 1) {
    limits.begin("search the folder");
    expect(limits.take(bytes("* 7 EXISTS\r\n".repeat(IMAP_REPLY_LIMITS.responses)))).toBeNull();
  }
  expect(limits.take(bytes("* 7 EXISTS\r\n"))).toContain("2,000 responses");
});

test("literals are recognized wherever the bytes are split", () => {
  const inside = "* 1 FETCH (X {9999999}\r\n ";
  const literals = new ImapReplyLimits();
  const text = bytes(
    `* 1 FETCH (UID 1 BODY[] {${inside.length}}\r\n${inside} A {0}\r\n B ~{3}\r\n({)\r\n)\r\n${"* 1 EXISTS\r\n".repeat(1_997)}`,
  );
  for (const byte of text) expect(literals.take(Uint8Array.of(byte))).toBeNull();
  expect(literals.take(bytes("* 1 EXISTS\r\n"))).toBeNull();
  expect(literals.take(bytes("* 1 EXISTS\r\n"))).toContain("responses");
});

test("a size of a literal that is padded beyond what is read is refused: its content would not be counted", () => {
  expect(take(`* 1 FETCH (BODY[] {${"0".repeat(40)}5}\r\n`)?.excess).toContain("invalid literal");
});

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
