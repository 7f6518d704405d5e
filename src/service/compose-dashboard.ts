import type { Profiles } from "../accounts/profiles.ts";
import type { AuditLog } from "../accounts/audit-log.ts";
import type { Sessions } from "../accounts/sessions.ts";
import type { SetupLinks } from "../accounts/setup-links.ts";
import type { AccountStore } from "../accounts/store.ts";
import type { Users } from "../accounts/users.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import type { Clock } from "../foundation/base/clock.ts";
import { createBlocklistPages } from "../dashboard/blocklists/pages.tsx";
import type { BlocklistUseCases } from "../dashboard/blocklists/use-cases.ts";
import type { JobQueries } from "../bulk/job-queries.ts";
import type { BulkJobs } from "../bulk/jobs.ts";
import type { DmarcPageUseCases } from "../dashboard/dmarc/page-use-cases.ts";
import { createDomainPages } from "../dashboard/dmarc/pages.tsx";
import { createDmarcReportPages } from "../dashboard/dmarc/report-pages.ts";
import type { DmarcReportUseCases } from "../dashboard/dmarc/use-cases.ts";
import { AttentionBoard, type AttentionSource } from "../dashboard/home/attention-board.ts";
import { operatorSource, type OperatorFacts } from "../dashboard/home/operator-attention.ts";
import { createHomePages, type HomeUseCases } from "../dashboard/home/pages.tsx";
import { createListPages } from "../dashboard/lists/pages.ts";
import { createUsagePages, type UsagePageUseCases } from "../dashboard/usage/pages.tsx";
import { createWebhookPages, type WebhookPageUseCases } from "../dashboard/webhooks/pages.tsx";
import { createVerifyPages, type VerifyPageUseCases } from "../dashboard/verify/pages.tsx";
import { PREFERENCES } from "../dashboard/preferences.ts";
import { createProfilePages } from "../dashboard/profile/pages.tsx";
import { type ActiveSession, Dashboard } from "../dashboard/serve-pages.tsx";
import { withRole } from "../dashboard/roles.ts";
import { createSignInPages } from "../dashboard/sign-in/pages.tsx";
import { createUserPages, type UserPagesParts } from "../dashboard/users/pages.tsx";
import type { Guard } from "../foundation/http/guard.ts";

export interface DashboardParts {
  readonly clock: Clock;
  readonly guard: Guard;
  readonly sessions: Sessions;
  readonly setupLinks: SetupLinks;
  readonly profiles: Profiles;
  readonly users: Users;
  /** The URL as set; null: links begin with the host of the request. */
  readonly baseUrl: string | null;
  readonly mailInvitation: UserPagesParts["mail"];
  readonly clientAddress: (request: Request) => string | null;
  readonly accounts: AccountStore;
  readonly credits: ByMode<CreditHolds>;
  readonly lists: { readonly jobs: BulkJobs; readonly queries: JobQueries };
  /** What a caller is called, by its `keyId`; null for one that was removed. */
  readonly callerName: (keyId: string) => string | null;
  /** What needs attention, by part of the product. */
  readonly attention: readonly AttentionSource[];
  readonly serviceState: () => OperatorFacts;
  readonly home: Pick<HomeUseCases, "targets" | "mailInName">;
  readonly blocklist: Omit<BlocklistUseCases, "clock">;
  readonly dmarcReports: DmarcReportUseCases & DmarcPageUseCases;
  readonly usage: UsagePageUseCases;
  readonly webhooks: WebhookPageUseCases;
  readonly verify: Omit<VerifyPageUseCases, "guard" | "clock" | "keysOf">;
  readonly isHttps: boolean;
  readonly audit: AuditLog;
  /** Pages that are composed elsewhere. */
  readonly settings: ConstructorParameters<typeof Dashboard>[0]["routes"];
}

/** The dashboard with all its pages. */
export const composeDashboard = (parts: DashboardParts): Dashboard => {
  const { clock, guard, sessions, accounts, lists, callerName, isHttps } = parts;
  const board = new AttentionBoard(clock, [...parts.attention, operatorSource(parts.serviceState)]);
  const starterName = (keyId: string): string => callerName(keyId) ?? "a user or key that was removed";
  const findSession = (token: string, isSecure: boolean): ActiveSession | undefined => {
    const session = sessions.find(token, isSecure);
    const account = session && accounts.findAccount(session.account.id);
    return session && account && { sessionId: session.id, csrfToken: session.csrfToken, user: session.user, account };
  };
  return new Dashboard({
    ...{ guard, clock, findSession, isHttps, audit: parts.audit, clientAddress: parts.clientAddress },
    routes: [
      ...PREFERENCES,
      ...createHomePages({
        ...{ ...parts.home, clock, board, usage: parts.usage.usage, history: parts.verify.history },
        runningLists: ({ caller }) => lists.queries.running(caller),
      }),
      ...createBlocklistPages({ ...parts.blocklist, clock }),
      ...createListPages({ bulk: lists.jobs, queries: lists.queries, starterName }, clock),
      ...createDomainPages(parts.dmarcReports),
      ...createDmarcReportPages(parts.dmarcReports),
      ...createSignInPages(parts),
      ...createProfilePages(parts),
      ...createUserPages({ ...parts, mail: parts.mailInvitation }),
      ...createUsagePages(parts.usage),
      ...createWebhookPages(parts.webhooks),
      ...createVerifyPages({ ...parts.verify, guard, clock, keysOf: (id) => accounts.listKeys(id) }),
      ...parts.settings,
    ].map(withRole),
    frameFacts: (viewer) => ({
      credits: parts.credits.live.balance(viewer.account.id).available,
      attention: board.counts(viewer),
    }),
  });
};
