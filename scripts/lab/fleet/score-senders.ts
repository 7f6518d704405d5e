import type { Observed } from "./observed.ts";
import type { Kind, Stream } from "./plan.ts";
import { FORGED_IP } from "./schedule.ts";
import type { Simulated } from "./simulate.ts";

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

/** Messages by true sender and source. What forged reports tell is nobody's mail. */
const cellsOf = ({ truth, observed }: Pick<Simulated, "truth" | "observed">): Cell[] => {
  const cells = new Map<string, Cell>();
  const ids = new Map<Stream, number>();
  for (const { ip, source, count } of observed.rows) {
    const stream = truth.get(ip);
    if (stream === undefined) {
      if (ip === FORGED_IP) continue;
      throw new Error(`nobody sent from ${ip}`);
    }
    const id = ids.get(stream) ?? ids.size;
    ids.set(stream, id);
    const cell = cells.get(`${id} ${source}`) ?? { stream, source, messages: 0 };
    cell.messages += count;
    cells.set(`${id} ${source}`, cell);
  }
  return [...cells.values()];
};

const classesOf = ({ sources }: Observed): ReadonlyMap<string, string> =>
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

/** Every sender of a domain. */
export const sendersOf = (simulated: Simulated): SenderScore[] => {
  const cells = cellsOf(simulated);
  const classes = classesOf(simulated.observed);
  const streams = [...new Set(cells.map(({ stream }) => stream))];
  return streams.map((stream) => senderOf(simulated.plan.name, stream, cells, classes));
};

/** Precision and recall of each class over all senders. What is right by an expert's view counts as the truth. */
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
