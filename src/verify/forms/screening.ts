import type { Clock } from "../../foundation/base/clock.ts";
import { AppError } from "../../foundation/base/errors.ts";
import type { ByMode, KeyMode } from "../../foundation/base/secrets.ts";
import { waitFor } from "../../foundation/base/wait.ts";
import type { Caller } from "../../foundation/http/guard.ts";
import type { Attempts } from "../attempts.ts";
import type { VerificationEngine } from "../engine.ts";
import { type SubStatus, VERDICT_OF, type Verdict, type VerificationResult } from "../result.ts";
import { PoolClosed } from "../smtp/pool.ts";

/** What syntax and the domain can say against an address. */
const SAID_BY_DOMAIN: ReadonlySet<SubStatus> = new Set([
  "invalid_syntax",
  "domain_not_found",
  "no_mail_server",
  "null_mx",
  "unroutable_mx",
]);

interface ScreeningDeps {
  readonly engines: ByMode<VerificationEngine>;
  readonly attempts: ByMode<Attempts>;
}

/** All that a page learns of an address; verdict and reason are null where nothing speaks against one that was only screened. */
interface FormResult {
  readonly verdict: Verdict | null;
  readonly sub_status: SubStatus | null;
  readonly did_you_mean: string | null;
}

const formResultOf = (reason: SubStatus | null, meant: string | null): FormResult => ({
  verdict: reason === null ? null : VERDICT_OF[reason],
  sub_status: reason,
  did_you_mean: meant,
});

/** A verification as a publishable key gets it. */
export const formViewOf = <
  V extends { readonly id: string; readonly status: string; readonly result?: VerificationResult },
>(
  view: V,
  meant: string | null,
) =>
  view.result === undefined
    ? { ...view, did_you_mean: meant }
    : { id: view.id, status: view.status, result: formResultOf(view.result.sub_status, meant) };

interface ScreeningLimits {
  readonly timeoutMs: number;
  /** Fires when the client is gone. */
  readonly signal: AbortSignal;
}

const unlessStopping = (error: unknown): never => {
  if (error instanceof PoolClosed) throw new AppError("unavailable", { message: "The service is stopping." });
  throw error;
};

/** Screens addresses by syntax, domain and the list of disposable domains. No mail server is asked, nothing is stored. */
export class Screening {
  constructor(
    private readonly clock: Clock,
    private readonly deps: ScreeningDeps,
  ) {}

  /** The address that was probably meant; null when there is none. */
  suggestionFor(mode: KeyMode, email: string): string | null {
    return this.deps.engines[mode].begin(email).address.suggestion;
  }

  /** What speaks against the address; null when nothing does, or when DNS did not respond within `timeoutMs`. */
  async screen(
    { accountId, mode }: Pick<Caller, "accountId" | "mode">,
    email: string,
    limits: ScreeningLimits,
  ): Promise<FormResult> {
    const { suggestion, problem, disposable } = this.deps.engines[mode].begin(email).address;
    if (problem !== null) return formResultOf("invalid_syntax", suggestion);
    const attempt = this.deps.attempts[mode].make({
      submitted: email,
      isCell: false,
      before: null,
      onBehalfOf: { account: accountId, priority: "realtime" },
      duringOutage: "conclude",
      accountId,
      onlyDomain: true,
    });
    const made = await waitFor(this.clock, attempt, limits).catch(unlessStopping);
    const said = made.ok && made.value.kind === "concluded" ? made.value.result.sub_status : null;
    const fromDomain = said !== null && SAID_BY_DOMAIN.has(said) ? said : null;
    return formResultOf(fromDomain ?? (disposable === null ? null : "disposable"), suggestion);
  }
}
