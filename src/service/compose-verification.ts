import type { AuditLog } from "../accounts/audit-log.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import { createTokenBuckets } from "../foundation/base/limits.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import { IdempotencyStore } from "../foundation/db/idempotency.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { type Authenticate, Guard } from "../foundation/http/guard.ts";
import { createBudgets } from "../foundation/http/request-memory.ts";
import { AccountUsage } from "../accounts/usage/account-usage.ts";
import { RateLimitedRequests } from "../accounts/usage/rate-limited-requests.ts";
import { UsageStore } from "../accounts/usage/usage-store.ts";
import { Checks } from "../verify/checks.ts";
import type { VerificationEngine } from "../verify/engine.ts";
import { History } from "../verify/history.ts";
import { HistoryStore } from "../verify/history-store.ts";
import { Runner } from "../verify/runner.ts";
import { VerificationStore } from "../verify/store.ts";

/** Single verifications, and what lists share with them. */
export const composeVerification = (
  runtime: Runtime,
  engines: ByMode<VerificationEngine>,
  credits: ByMode<CreditHolds>,
) => {
  const store = new VerificationStore(runtime.db);
  const runner = new Runner(runtime, { store, engines, credits });
  const idempotency = new IdempotencyStore(runtime);
  const checks = new Checks(runtime, { store, idempotency, engines, credits, runner });
  const history = new History(new HistoryStore(runtime.db), new UsageStore(runtime.db));
  return { runner, checks, history, idempotency };
};

/** What accounts used, and the guard that counts the requests which the rate limit refuses. */
export const composeUsage = (runtime: Runtime, authenticate: Authenticate, audit: Pick<AuditLog, "perform">) => {
  const { clock } = runtime;
  const store = new UsageStore(runtime.db);
  const rateLimited = new RateLimitedRequests(runtime, store);
  const guard = new Guard(authenticate, {
    ...{ buckets: createTokenBuckets(clock), budgets: createBudgets(clock) },
    onRateLimited: (caller) => rateLimited.count(caller),
    perform: ({ accountId, keyId }, done, act) =>
      audit.perform({ ...act, action: { ...done, accountId, byKey: keyId } }),
  });
  return { guard, usage: new AccountUsage(store), rateLimited };
};
