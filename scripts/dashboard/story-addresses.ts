/** The addresses that people verify in the dashboard's world. */
import { HOSTILE, HOSTILE_UNICODE } from "./hostile.ts";

/** Numbers that look random and are the same in every run. */
export class Dice {
  #state: number;

  constructor(seed = 1) {
    this.#state = seed;
  }

  /** A whole number from 0, less than `below`. */
  roll(below: number): number {
    // Numerical Recipes' linear congruential generator; its high bits are good enough for a story.
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * below);
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.roll(items.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }
}

const FIRST = [
  "m.ruiz",
  "anna",
  "jan",
  "lena.hoffmann",
  "t.okafor",
  "sofia",
  "peter",
  "carla.rossi",
  "y.tanaka",
  "noor",
  "o.svensson",
  "emil",
];
const LAST = ["", ".k", "-w", ".berg", "+shop", "_22", ".lopez", "7"];
const DOMAINS = [
  "hotelmar-lab.com",
  "nordlicht.example",
  "ticketo-lab.com",
  "libreria-lab.com",
  "acme-lab.com",
  "bakkerij.example",
];

/** Every verdict and sub_status that a mail server, a domain or a list can cause. */
export const SPECIAL_ADDRESSES: readonly string[] = [
  ...["nobody@acme-lab.com", "gone.long.ago@hotelmar-lab.com", "full.box@libreria-lab.com"],
  ...["anna@everybody.example", "info@nordlicht.example", "sales@ticketo-lab.com", "jan@greylist.example"],
  ...["ops@blocks.example", "erik@blocks.example", "post@sender.example", "erik@sender.example", "lena@busy.example"],
  ...["lena@fault.example", "lena@tls.example", "lena@nonsense.example", "jörg@ascii.example", "x@mailinator.com"],
  ...["lena@nullmx.example", "lena@web-only.example", "lena@private.example", "lena@broken-dns.example"],
  ...[
    "lena@no-such-domain.example",
    "anna@gmial.com",
    "someone@spamtraps.example",
    "not an address",
    "two@@ats.example",
  ],
  ...[
    "anna@gmail.com",
    "nobody@hostile.example",
    `"<b>xssmark</b>"@hostile.example`,
    `${HOSTILE.attribute}@acme-lab.com`,
  ],
];

/** Servers that say nothing: each check of them takes seconds. */
export const SLOW_ADDRESSES: readonly string[] = ["lena@silent.example", "anna@patience.example"];

const ordinary = (dice: Dice): string => {
  const isGone = dice.roll(9) === 0;
  return `${isGone ? dice.pick(["old.", "formerly.", "unknown."]) : ""}${dice.pick(FIRST)}${dice.pick(LAST)}${dice.roll(90)}@${dice.pick(DOMAINS)}`;
};

/** So many addresses as customers type them: most exist. */
export const customers = (dice: Dice, count: number): string[] =>
  Array.from({ length: count }, () => (dice.roll(8) === 0 ? dice.pick(SPECIAL_ADDRESSES) : ordinary(dice)));

const CELLS = [
  "Berlin",
  "São Paulo",
  "=1+1",
  "+49 30 1234",
  "-",
  `"quoted"`,
  "a;b",
  HOSTILE.script,
  HOSTILE_UNICODE,
  "",
  " spaces ",
];
const quoted = (cell: string): string => `"${cell.replaceAll('"', '""')}"`;

interface CsvOptions {
  readonly delimiter?: "," | ";" | "\t";
  readonly header?: readonly string[];
  readonly before?: string;
}

const HEADER = ["id", "E-Mail", "city", "note"];

/** A list of customers as an export writes it, with duplicates and empty rows. */
export const customersCsv = (
  dice: Dice,
  rows: number,
  { delimiter = ",", header = HEADER, before = "" }: CsvOptions = {},
): string => {
  const emails = customers(dice, rows);
  const lines = emails.map((email, at) => {
    const address = at % 40 === 39 ? "" : at % 23 === 22 ? (emails[at - 3] ?? email) : email;
    return [String(1_000 + at), address, dice.pick(CELLS), at % 7 === 0 ? dice.pick(CELLS) : ""]
      .map(quoted)
      .join(delimiter);
  });
  return `${before}${[header.map(quoted).join(delimiter), ...lines].join("\r\n")}\r\n`;
};

export const HOSTILE_HEADER: readonly string[] = [
  HOSTILE.script,
  `E-Mail ${HOSTILE.attribute}`,
  "=cmd|'/c calc'!A1",
  HOSTILE_UNICODE,
];
