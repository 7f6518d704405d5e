import { isoTime } from "../../foundation/base/clock.ts";
import { isDatabaseState } from "../../foundation/base/errors.ts";
import { DAY_MS } from "../../foundation/base/days.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { readAddressCell } from "../../foundation/mail/address-in-cell.ts";
import { parseAddress } from "../../foundation/mail/address.ts";
import type { AttemptOrder, Attempts, MadeAttempt } from "../attempts.ts";
import type { BounceEvidence } from "../evidence.ts";
import type { VerificationResult } from "../result.ts";
import type { BounceStore } from "./bounce-store.ts";

/** A mailbox may be made anew, or a name given to somebody else: an older bounce decides nothing. */
const COUNTS_DAYS = 180;

const addressIn = ({ submitted, isCell }: AttemptOrder): string | null => {
  const read = isCell ? readAddressCell(submitted) : null;
  if (read !== null) return read.ok ? read.value.address.normalized : null;
  const parsed = parseAddress(submitted);
  return parsed.ok ? parsed.value.normalized : null;
};

/** The server accepted the recipient and refuses a random one. */
const isProof = ({ signals }: VerificationResult): boolean => signals.smtp === "pass" && signals.catch_all === "pass";

/** Gives each attempt the hard bounce of its address that the account reported, and notes when an attempt refutes one. */
export class BounceAwareAttempts implements Attempts {
  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly deps: { readonly attempts: Attempts; readonly store: BounceStore },
  ) {}

  async make(order: AttemptOrder): Promise<MadeAttempt> {
    const { attempts, store } = this.deps;
    const bounce = this.#find(order);
    const made = await attempts.make({ ...order, bounce });
    if (bounce === null || made.kind !== "concluded" || !isProof(made.result)) return made;
    const { accountId } = order;
    const proved = { accountId, email: made.result.normalized_email, atMs: this.runtime.clock.nowMs() };
    try {
      await this.runtime.db.commit((tx) => store.refute(tx, proved));
    } catch (error) {
      // The result counts more: the next check that proves the mailbox refutes the bounce.
      if (!isDatabaseState(error)) throw error;
    }
    return made;
  }

  fail(order: AttemptOrder): MadeAttempt {
    return this.deps.attempts.fail(order);
  }

  #find(order: AttemptOrder): BounceEvidence | null {
    const { store } = this.deps;
    const { accountId } = order;
    if (!store.hasHard(accountId)) return null;
    const email = addressIn(order);
    const sinceMs = this.runtime.clock.nowMs() - COUNTS_DAYS * DAY_MS;
    const found = email === null ? null : store.newestHard(accountId, email, sinceMs);
    if (found === null) return null;
    const { source, status, diagnostic, bouncedAtMs } = found;
    return { source, status, diagnostic, bounced_at: isoTime(bouncedAtMs) };
  }
}
