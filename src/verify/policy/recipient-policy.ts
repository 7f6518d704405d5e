import { DAY_MS, dayOfTime, isoDay } from "../../foundation/base/days.ts";
import { errorText, type Result } from "../../foundation/base/errors.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { type Address, parseAddress } from "../../foundation/mail/address.ts";
import { resultSchema, UNSETTLED } from "../result.ts";
import type { BackgroundChecks } from "./background-checks.ts";
import { POLICY_TEXTS, type PolicySettings } from "./policy-settings.ts";
import type { KnownResult, RecipientStore } from "./recipient-store.ts";
import { POLICY_MARK } from "../replies.ts";

export interface RecipientPolicyDeps {
  readonly store: Pick<RecipientStore, "latest">;
  /** The entry of the suppression list that matches; null without one. */
  readonly matchSuppression: (normalizedEmail: string) => string | null;
  /** The id of the account that answers, while it is enabled; the error is a sentence. */
  readonly accountOf: (name: string | null) => Result<string, string>;
  readonly background: Pick<BackgroundChecks, "add">;
}

export const POLICY_DECISIONS = ["rejected_known", "rejected_suppressed", "passed"] as const;

/** What was decided; `action` is what Postfix reads (access(5)). */
export interface PolicyAnswer {
  readonly decision: (typeof POLICY_DECISIONS)[number];
  readonly action: string;
}

export const DUNNO: PolicyAnswer = { decision: "passed", action: "DUNNO" };

/** Less certain results do not reject: a server that accepts other recipients that do not exist, say. */
const CONFIDENCE_MIN = 95;
/** After this time, what rejects or is unsettled is verified again. */
const REFRESH_MS = DAY_MS;
/** How long the account is not looked up again. */
const ACCOUNT_MS = 10_000;

const confidenceSchema = resultSchema.pick({ confidence: true });

/** Judges recipients by what is stored. Unknown is not no: whatever is not certain passes. */
export class RecipientPolicy {
  #account: Result<string, string> | null = null;
  #accountReadMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly runtime: Pick<Runtime, "clock" | "log">,
    private readonly settings: PolicySettings,
    private readonly deps: RecipientPolicyDeps,
  ) {}

  /** Never throws: what cannot be read passes. `source` is the mail server that asks. */
  answer(recipient: string, source: string): PolicyAnswer {
    try {
      const address = parseAddress(recipient);
      const account = this.#currentAccount();
      return address.ok && account.ok ? this.#judge(account.value, address.value, source) : DUNNO;
    } catch (error) {
      this.runtime.log.error("a recipient of outgoing mail could not be judged, and passed", {
        error: errorText(error),
      });
      return DUNNO;
    }
  }

  /** Why no recipient is judged; null while they are. */
  finding(): string | null {
    const account = this.#currentAccount();
    return account.ok ? null : `The policy service passes every recipient. ${account.error}`;
  }

  #currentAccount(): Result<string, string> {
    const nowMs = this.runtime.clock.monotonicMs();
    if (this.#account === null || nowMs - this.#accountReadMs >= ACCOUNT_MS) {
      this.#account = this.deps.accountOf(this.settings.policyAccount);
      this.#accountReadMs = nowMs;
    }
    return this.#account;
  }

  #judge(accountId: string, address: Address, source: string): PolicyAnswer {
    const { policySuppression, policyReject, policyMaxAgeDays } = this.settings;
    const { normalized } = address;
    if (policySuppression && this.deps.matchSuppression(normalized) !== null)
      return this.#refuse("rejected_suppressed", `5.7.1 ${named(normalized)} on the suppression list ${POLICY_MARK}`);
    const known = this.deps.store.latest(accountId, normalized);
    const ageMs = known === null ? Number.POSITIVE_INFINITY : this.runtime.clock.nowMs() - known.completedAtMs;
    const isCurrent = ageMs <= policyMaxAgeDays * DAY_MS;
    const reason = policyReject.find((one) => one === known?.subStatus);
    const isRefused = known !== null && reason !== undefined && isCurrent && ageMs >= 0 && isCertain(known);
    if (!isCurrent || (ageMs > REFRESH_MS && (isRefused || isUnsettled(known))))
      this.deps.background.add({ accountId, email: address.mailbox, normalizedEmail: normalized }, source);
    if (!isRefused) return DUNNO;
    const [code, text] = POLICY_TEXTS[reason];
    const since = isoDay(dayOfTime(known.completedAtMs));
    return this.#refuse("rejected_known", `${code} ${named(normalized)} ${text} since ${since} ${POLICY_MARK}`);
  }

  #refuse(decision: PolicyAnswer["decision"], text: string): PolicyAnswer {
    return { decision, action: `${this.settings.policyMode === "reject" ? "REJECT" : "WARN"} ${text}` };
  }
}

const isUnsettled = (known: KnownResult | null): boolean => UNSETTLED.some((one) => one === known?.subStatus);

const isCertain = ({ result }: KnownResult): boolean =>
  confidenceSchema.parse(JSON.parse(result)).confidence >= CONFIDENCE_MIN;

/** How a reply names the recipient: replies are ASCII without control characters (RFC 5321 §4.2). */
const named = (normalized: string): string => (/^[\x21-\x7e]+$/.test(normalized) ? `<${normalized}>:` : "recipient");
