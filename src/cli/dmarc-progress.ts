import { systemClock } from "../base/clock.ts";
import type { IngestionRow } from "../dmarc/ingest/ingestion-store.ts";
import type { Outcome } from "../dmarc/report/outcome.ts";
import type { ReportPath } from "./dmarc-files.ts";
import { type Io, table } from "./io.ts";
import { counted } from "./verify-file-progress.ts";

const REDRAWN_EVERY_MS = 250;
const SAID_EVERY_MS = 5_000;
const BAR_CHARACTERS = 30;
/** Problems that are named; the rest is counted. */
const PROBLEMS_MAX = 20;

/** How far an import is. */
export interface ImportState {
  readonly files: number;
  readonly filesDone: number;
  readonly bytes: number;
  readonly bytesDone: number;
  /** Mails and files by what became of them; a mailbox holds many. */
  readonly outcomes: Readonly<Record<Outcome, number>>;
  /** The same by outcome and reason, such as `rejected no_report`. */
  readonly reasons: ReadonlyMap<string, number>;
  readonly problems: ReadonlyArray<{ readonly input: string; readonly problem: string }>;
}

/** Counts what becomes of the files of an import. */
export const createTally = (files: readonly ReportPath[]) => {
  const outcomes: Record<Outcome, number> = { stored: 0, duplicate: 0, empty: 0, quarantined: 0, rejected: 0 };
  const reasons = new Map<string, number>();
  const problems: { input: string; problem: string }[] = [];
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  let filesDone = 0;
  let bytesDone = 0;

  const count = (input: string, outcome: Outcome, reason: string | null): void => {
    outcomes[outcome] += 1;
    const key = reason === null ? outcome : `${outcome} ${reason}`;
    reasons.set(key, (reasons.get(key) ?? 0) + 1);
    const isProblem = outcome === "rejected" || outcome === "quarantined";
    if (isProblem && problems.length < PROBLEMS_MAX) problems.push({ input, problem: key });
  };

  return {
    add: (input: string, { outcome, reason }: IngestionRow): void => count(input, outcome ?? "rejected", reason),
    /** A file that could not be had at all. */
    fail: (input: string, problem: string): void => count(input, "rejected", problem),
    finishFile: ({ size }: ReportPath): void => {
      filesDone += 1;
      bytesDone += size;
    },
    look: (): ImportState => ({ files: files.length, filesDone, bytes, bytesDone, outcomes, reasons, problems }),
  };
};

export type Tally = ReturnType<typeof createTally>;

const total = ({ outcomes }: ImportState): number => Object.values(outcomes).reduce((sum, count) => sum + count, 0);

/** How far an import is, in a line: `[#####     ]  50%  500 of 1,000 files, 512 reports stored`. */
export const importLine = (state: ImportState): string => {
  const { files, filesDone, bytes, bytesDone, outcomes } = state;
  const share = bytes === 0 ? 0 : bytesDone / bytes;
  const bar = "#".repeat(Math.floor(share * BAR_CHARACTERS)).padEnd(BAR_CHARACTERS);
  const percent = `${Math.floor(share * 100)}%`.padStart(4);
  const read = `${filesDone.toLocaleString("en")} of ${counted(files, "file", "files")}`;
  return `[${bar}] ${percent}  ${read}, ${outcomes.stored.toLocaleString("en")} stored`;
};

/** The outcomes with their reasons, the most frequent first. */
export const tallyText = (state: ImportState): string => {
  const rows = [...state.reasons]
    .toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .map(([key, count]) => {
      const [outcome = "", ...reason] = key.split(" ");
      return [outcome, count.toLocaleString("en"), reason.join(" ")];
    });
  return table(["OUTCOME", "COUNT", "REASON"], [...rows, ["total", total(state).toLocaleString("en"), ""]]);
};

/** The problems by name, as far as they are named, and what can be done. */
export const problemsText = ({ problems, outcomes, reasons }: ImportState): string[] => {
  const more = outcomes.rejected + outcomes.quarantined - problems.length;
  const isForeign = reasons.has("quarantined foreign_domain");
  return [
    ...problems.map(({ input, problem }) => `${input}: ${problem}`),
    ...(more > 0 ? [`… and ${more.toLocaleString("en")} more`] : []),
    ...(isForeign
      ? [
          "Reports about domains that are not enrolled are kept: enrol the domain, then run `postwarden dmarc retry --all`.",
        ]
      : []),
  ];
};

/** Shows how far an import is until the answer is called: drawn again on a terminal, else a line every few seconds. */
export const showImport = (io: Io, { look }: Tally): (() => void) => {
  const { status } = io;
  const everyMs = status === null ? SAID_EVERY_MS : REDRAWN_EVERY_MS;
  let cancel = systemClock.after(everyMs, again);
  function again(): void {
    (status ?? io.err)(importLine(look()));
    cancel = systemClock.after(everyMs, again);
  }
  return () => {
    cancel();
    status?.("");
  };
};
