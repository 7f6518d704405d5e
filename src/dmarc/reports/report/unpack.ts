import { gunzip } from "./inflate.ts";
import type { UnpackProblem } from "./outcome.ts";
import { decodeBase64Text, kindOfPayload } from "./payload.ts";
import { readZip } from "./zip.ts";

/**
 * What unpacking one mail, with everything in it, may cost. What is thrown away because it is too large is paid for as well.
 * The largest reports that reporters send unpack to a few megabytes: some 500 bytes a record.
 */
export const UNPACK_LIMITS = {
  entryBytesMax: 32 * 1024 * 1024,
  mailBytesMax: 64 * 1024 * 1024,
  entriesMax: 16,
  /** Archives in archives, and mails in mails. */
  depthMax: 3,
} as const;

/** What is left of the allowance of one mail. Shared by all of its parts, and used up as they are unpacked. */
export interface UnpackBudget {
  bytesLeft: number;
  entriesLeft: number;
}

export const createUnpackBudget = (): UnpackBudget => ({
  bytesLeft: UNPACK_LIMITS.mailBytesMax,
  entriesLeft: UNPACK_LIMITS.entriesMax,
});

/** A file that is not an archive, or why one could not be unpacked. */
export type Unpacked =
  | {
      readonly kind: "xml" | "json" | "message" | "unused" | "other";
      readonly name: string | null;
      readonly bytes: Uint8Array;
      /** The archive ended early: the bytes are incomplete. */
      readonly isTruncated: boolean;
    }
  | { readonly kind: "refused"; readonly name: string | null; readonly reason: UnpackProblem };

interface Packed {
  readonly bytes: Uint8Array;
  readonly name: string | null;
  readonly isTruncated: boolean;
  readonly depth: number;
}

/**
 * Unpacks gzip files, zip archives and base64 texts, also nested, and detects the files in them by magic bytes, never by
 * name. What exceeds a limit or cannot be unpacked is `refused` with the reason; the rest is still returned. Never throws.
 */
export const unpack = async (
  bytes: Uint8Array,
  name: string | null = null,
  budget: UnpackBudget = createUnpackBudget(),
): Promise<Unpacked[]> => {
  const waiting: Packed[] = [{ bytes, name, isTruncated: false, depth: 0 }];
  const found: Unpacked[] = [];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { contents, refused } = await open(next, budget);
    waiting.push(...contents.filter((content) => content.depth > next.depth));
    found.push(...contents.filter((content) => content.depth === next.depth).map(bottomOf), ...refused);
  }
  return found;
};

interface Opened {
  /** The contents, one level deeper; or the file itself, when it is not an archive. */
  readonly contents: readonly Packed[];
  readonly refused: readonly Unpacked[];
}

const open = async (packed: Packed, budget: UnpackBudget): Promise<Opened> => {
  const kind = kindOfPayload(packed.bytes);
  if (kind !== "gzip" && kind !== "zip" && kind !== "base64") return { contents: [packed], refused: [] };
  if (packed.depth >= UNPACK_LIMITS.depthMax) return refuse(packed.name, "nested_too_deep");
  if (kind === "zip") return openZip(packed, budget);
  if (kind === "base64") {
    const bytes = await decodeBase64Text(packed.bytes);
    budget.bytesLeft -= bytes?.byteLength ?? 0;
    return { contents: [bytes === null ? packed : { ...packed, bytes, depth: packed.depth + 1 }], refused: [] };
  }
  return openGzip(packed, budget);
};

const openGzip = async (packed: Packed, budget: UnpackBudget): Promise<Opened> => {
  const bytesMax = takeEntry(budget);
  const file = await gunzip(packed.bytes, bytesMax);
  if (!file.ok) {
    return refuse(packed.name, file.error === "too_large" ? payTooLarge(budget, bytesMax) : "gzip_damaged");
  }
  budget.bytesLeft -= file.value.bytes.byteLength;
  const isTruncated = packed.isTruncated || file.value.isTruncated;
  return { contents: [{ ...packed, bytes: file.value.bytes, isTruncated, depth: packed.depth + 1 }], refused: [] };
};

const openZip = async (packed: Packed, budget: UnpackBudget): Promise<Opened> => {
  const contents: Packed[] = [];
  const refused: Unpacked[] = [];
  const problem = await readZip(packed.bytes, async ({ name, open: openFile }) => {
    if (budget.entriesLeft < 1) {
      refused.push({ kind: "refused", name: packed.name, reason: "too_many_entries" });
      return "stop";
    }
    const bytesMax = takeEntry(budget);
    const file = await openFile(bytesMax);
    if (!file.ok) {
      const reason = file.error === "entry_too_large" ? payTooLarge(budget, bytesMax) : file.error;
      refused.push({ kind: "refused", name, reason });
      return "go_on";
    }
    const { bytes, isTruncated } = file.value;
    budget.bytesLeft -= bytes.byteLength;
    contents.push({ bytes, name, isTruncated, depth: packed.depth + 1 });
    return "go_on";
  });
  if (problem !== null) refused.push({ kind: "refused", name: packed.name, reason: problem });
  return { contents, refused };
};

const refuse = (name: string | null, reason: UnpackProblem): Opened => ({
  contents: [],
  refused: [{ kind: "refused", name, reason }],
});

/** Uses up one entry of the budget; returns how many bytes it may have. */
const takeEntry = (budget: UnpackBudget): number => {
  budget.entriesLeft -= 1;
  return budget.entriesLeft < 0 ? 0 : Math.min(UNPACK_LIMITS.entryBytesMax, budget.bytesLeft);
};

/** Charges the budget with the bytes that an entry was allowed, and returns which limit it exceeded. */
const payTooLarge = (budget: UnpackBudget, bytesMax: number): UnpackProblem => {
  if (budget.entriesLeft < 0) return "too_many_entries";
  budget.bytesLeft -= bytesMax;
  return bytesMax < UNPACK_LIMITS.entryBytesMax ? "mail_too_large" : "entry_too_large";
};

const bottomOf = ({ bytes, name, isTruncated }: Packed): Unpacked => {
  const kind = kindOfPayload(bytes);
  const isBottom = kind === "xml" || kind === "json" || kind === "message" || kind === "unused";
  return { kind: isBottom ? kind : "other", name, bytes, isTruncated };
};
