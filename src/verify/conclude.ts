import type { Evidence } from "./evidence.ts";
import type { VerificationResult } from "./result.ts";
import { type Judgement, judge } from "./verdict.ts";

export interface Concluded {
  readonly result: VerificationResult;
  /** The evidence with its conclusion written in. */
  readonly evidence: Evidence;
  readonly judgement: Judgement;
}

/** Draws the result object from the evidence; `verifiedAt` is ISO 8601 in UTC with milliseconds. */
export const conclude = (evidence: Evidence, verifiedAt: string): Concluded => {
  const judgement = judge(evidence);
  const { verdict, sub_status, quality_score, confidence, signals, because } = judgement;
  const { submitted: email, normalized_email } = evidence.address;
  return {
    result: {
      email,
      normalized_email,
      verdict,
      sub_status,
      quality_score,
      confidence,
      signals,
      verified_at: verifiedAt,
    },
    evidence: { ...evidence, conclusion: { verdict, sub_status, quality_score, confidence, because } },
    judgement,
  };
};
