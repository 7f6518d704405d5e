import { isoTime } from "../base/clock.ts";
import { concludeVerification } from "../verify/verdict.ts";
import { beginCellEvidence } from "../verify/engine.ts";
import type { Evidence } from "../verify/evidence.ts";
import { unpackEvidence } from "../verify/evidence-store.ts";
import { testEvidence } from "../verify/test-keys.ts";
import type { ListedRow } from "./list-store.ts";

export interface EvidenceSource {
  /** Whether the job is a test key's, whose evidence is made up anew. */
  readonly isTest: boolean;
  readonly stored: Uint8Array | undefined;
}

/**
 * Why a row has its result, or what is known so far. It is that of the row's address, with the text of the row. Null for a
 * row that finished when the evidence of lists was not kept yet.
 */
export const evidenceOfRow = (row: ListedRow, { isTest, stored }: EvidenceSource): Evidence | null => {
  const text = row.submittedEmail.trim();
  const begun = beginCellEvidence(text);
  if (stored !== undefined) {
    const { address, ...rest } = unpackEvidence(stored);
    return { ...rest, address: { ...address, submitted: text, read_as: begun.address.read_as } };
  }
  if (row.subStatus === null) return begun;
  const { evidence } = concludeVerification(isTest ? testEvidence(text, begun) : begun, isoTime(row.verifiedAtMs));
  return evidence.conclusion?.sub_status === row.subStatus ? evidence : null;
};
