import { parseReply } from "../foundation/net/smtp-reply.ts";
import { readReply, subStatusOf, verdictOf } from "./replies.ts";
import type { ReplyReading, ReplySubStatus, ReplyStage } from "./replies.ts";

/** What `postwarden inspect reply` prints, one object a reply. */
export interface InspectedReply {
  readonly input: string;
  readonly code: number | null;
  readonly enhanced: string | null;
  readonly reading: ReplyReading;
  readonly verdict: ReturnType<typeof verdictOf>;
  readonly sub_status: ReplySubStatus;
  /** The rule that read the reply; `unparsable` when the text is no reply. */
  readonly rule: string;
}

/**
 * Reads one SMTP reply from text, as a check at `stage` would. Verdict and sub_status are what the check would conclude had it
 * received only this reply, with everything else fine and a random recipient refused. Text that is not one complete reply
 * reads as `protocol_error` with `code` null. Never throws.
 */
export const inspectReply = (input: string, stage: ReplyStage = "rcpt"): InspectedReply => {
  const parsed = parseReply(unfold(input.trim()));
  const { reading, rule } = parsed.ok
    ? readReply(parsed.value, stage)
    : { reading: "protocol_error" as const, rule: "unparsable" };
  return {
    input,
    code: parsed.ok ? parsed.value.code : null,
    enhanced: parsed.ok ? parsed.value.enhanced : null,
    reading,
    verdict: verdictOf(reading),
    sub_status: subStatusOf(reading),
    rule,
  };
};

/** Mail logs fold a reply of several lines into one: "550-5.1.1 No such 550 5.1.1 user". Only such text is unfolded. */
const unfold = (text: string): string => {
  const code = /^([2-5][0-9]{2})-/.exec(text)?.[1];
  if (code === undefined || text.includes("\n") || !text.includes(` ${code} `)) return text;
  return text.replaceAll(` ${code} `, `\n${code} `).replaceAll(` ${code}-`, `\n${code}-`);
};
