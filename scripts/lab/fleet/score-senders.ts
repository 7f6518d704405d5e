import type { Observed } from "./observed.ts";
import type { Kind, Stream } from "./plan.ts";
import { FORGED_IP } from "./schedule.ts";
import type { Simulated } from "./simulate.ts";
import type { Truth } from "./traffic.ts";

const KINDS = ["authorized", "misconfigured", "forwarder", "threat"] as const;
type ScoredKind = (typeof KINDS)[number];

/** Precision and recall of a class, by messages. */
export interface ClassScore {
  readonly kind: ScoredKind;
  readonly messages: number;
  readonly precision: number;
  readonly recall: number;
}

/** A sender as it is, beside how the service shows it. */
export interface SenderScore {
  readonly domain: string;
  readonly who: string;
  readonly truth: Kind;
  readonly messages: number;
  /** Messages under a right class. */
  readonly right: number;
  /** What the rest was taken for. */
  readonly takenFor: Readonly<Record<string, number>>;
  /** The sources that it lies in, the largest first. */
  readonly keys: readonly (readonly [key: string, messages: number])[];
  /** Others who lie in its largest source. */
  readonly mixedWith: readonly string[];
  /** One source holds nearly all of it, and hardly anything else is in there. */
  readonly isApart: boolean;
  readonly isPooled: boolean;
}

/** Nearly all: a message here or there is nobody's trouble. */
const NEARLY_ALL = 0.98;
/** A part of a sender that goes elsewhere is a split from this share on. */
const WHOLE = 0.98;

interface Cell {
  readonly stream: Stream;
  readonly source: string;
  messages: number;
}

/** The name of a sender without its part in brackets: the organisation. */
const whoOf = ({ who }: Stream): string => who.replace(/ \(.*\)$/, "");

/** Messages by true sender and source. The counts of forged reports belong to no sender. */
const cellsOf = (truth: Truth, rows: Observed["rows"]): Cell[] => {
  const cells = new Map<string, Cell>();
  const first = new Map<string, Stream>();
  for (const { ip, source, count } of rows) {
    const found = truth.get(ip);
    if (found === undefined) {
      if (ip === FORGED_IP) continue;
      throw new Error(`nobody sent from ${ip}`);
    }
    // Forgers of two kinds are not told apart either.
    const who = whoOf(found);
    const stream = first.get(who) ?? found;
    first.set(who, stream);
    const cell = cells.get(`${who} ${source}`) ?? { stream, source, messages: 0 };
    cell.messages += count;
    cells.set(`${who} ${source}`, cell);
  }
  return [...cells.values()];
};

const classesOf = ({ sources }: Pick<Observed, "sources">): ReadonlyMap<string, string> =>
  new Map(sources.map(({ key, classification }) => [key, classification]));

const sum = (cells: readonly Cell[]): number => cells.reduce((total, { messages }) => total + messages, 0);

const senderOf = (
  domain: string,
  stream: Stream,
  cells: readonly Cell[],
  classes: ReadonlyMap<string, string>,
): SenderScore => {
  const own = cells.filter((cell) => cell.stream === stream).toSorted((a, b) => b.messages - a.messages);
  const messages = sum(own);
  const takenFor: Record<string, number> = {};
  let right = 0;
  for (const cell of own) {
    const found = classes.get(cell.source) ?? "nothing";
    if (stream.accept.some((kind) => kind === found)) right += cell.messages;
    else takenFor[found] = (takenFor[found] ?? 0) + cell.messages;
  }
  const [largest] = own;
  const inLargest = cells.filter(({ source }) => source === largest?.source);
  const others = inLargest.filter(
    (cell) => cell.stream !== stream && (cell.stream.isPooled !== true || stream.isPooled !== true),
  );
  const isWhole = (largest?.messages ?? 0) >= WHOLE * messages;
  const isPure = sum(inLargest.filter((cell) => !others.includes(cell))) >= NEARLY_ALL * sum(inLargest);
  return {
    ...{ domain, who: stream.who, truth: stream.accept[0], messages, right, takenFor },
    keys: own.map(({ source, messages: count }) => [source, count] as const),
    mixedWith: [...new Set(others.map((cell) => cell.stream.who))],
    isApart: stream.isPooled === true ? isPure : isWhole && isPure,
    isPooled: stream.isPooled === true,
  };
};

/** Every sender of a domain in what was seen of it. */
export const sendersOf = ({ plan, truth }: Simulated, seen: Pick<Observed, "sources" | "rows">): SenderScore[] => {
  const cells = cellsOf(truth, seen.rows);
  const classes = classesOf(seen);
  const streams = [...new Set(cells.map(({ stream }) => stream))];
  return streams.map((stream) => senderOf(plan.name, stream, cells, classes));
};

/** Precision and recall of each class over all senders. A class that an expert would accept counts as the truth. */
export const classScores = (senders: readonly SenderScore[]): ClassScore[] =>
  KINDS.map((kind) => {
    const own = senders.filter(({ truth }) => truth === kind);
    const messages = own.reduce((total, sender) => total + sender.messages, 0);
    const right = own.reduce((total, sender) => total + sender.right, 0);
    const wrongly = senders.reduce((total, { takenFor }) => total + (takenFor[kind] ?? 0), 0);
    return {
      ...{ kind, messages },
      precision: right + wrongly === 0 ? 1 : right / (right + wrongly),
      recall: messages === 0 ? 1 : right / messages,
    };
  });
