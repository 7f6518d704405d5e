import { FirstStepsStore } from "../accounts/first-steps-store.ts";
import type { AuditLog } from "../accounts/audit-store.ts";
import type { AccountsSlice, UsageSlice } from "../accounts/open.ts";
import { OwnKeys } from "../accounts/keys.ts";
import type { Suppressions } from "../accounts/suppress/store.ts";
import type { Owner } from "../foundation/base/secrets.ts";
import type { BlocklistSlice } from "../blocklist/open.ts";
import type { BulkSlice } from "../bulk/open.ts";
import type { DmarcSlice } from "../dmarc/open.ts";
import { SourceSearch } from "../dmarc/insight/queries/source-search.ts";
import { DmarcReaders } from "../dmarc/readers.ts";
import type { MachineAcknowledgements } from "../doctor/acknowledgements.ts";
import type { Doctor } from "../doctor/doctor.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { UrlOfRequest } from "../foundation/http/request-target.ts";
import { mailAction, type MailSubscriptions } from "../notifications/mail/subscription-store.ts";
import type { NotificationsSlice } from "../notifications/open.ts";
import type { Bounces } from "../verify/bounces/bounces.ts";
import type { VerifySlice } from "../verify/open.ts";
import { createBlocklistPages } from "./blocklists/pages.tsx";
import { createDomainPages, createDmarcReportPages } from "./dmarc/pages.tsx";
import { FirstSteps } from "./first-steps.ts";
import { AttentionBoard, type AttentionSource, operatorSources, type PartFinding } from "./home/attention-board.ts";
import { createHomePages, type HomeUseCases } from "./home/pages.tsx";
import { createListPages } from "./lists/pages.tsx";
import type { Brand } from "./logo.ts";
import { PREFERENCES } from "./frame.tsx";
import { createProfilePages } from "./profile/pages.tsx";
import { withRole } from "./roles.ts";
import { type ActiveSession, Dashboard } from "./serve-pages.tsx";
import type { RetentionFact } from "./settings/account.tsx";
import type { MailOffUseCases } from "./settings/notifications.tsx";
import { createSearchPages } from "./search/pages.tsx";
import { Search } from "./search/search.ts";
import { createSettingsPages } from "./settings/pages.tsx";
import type { PersonalDataUseCases } from "./settings/personal-data.tsx";
import type { ServiceFacts } from "./settings/service.tsx";
import { createSignInPages } from "./sign-in/pages.tsx";
import { createUsagePages } from "./usage/pages.tsx";
import { createUserPages } from "./users/pages.tsx";
import { createCodeAlerts, createInvitationMail, createTestMail } from "./users/user-mails.ts";
import { createVerifyPages } from "./verify/pages.tsx";
import { createWebhookPages } from "./webhooks/pages.tsx";
import { createWelcomePages } from "./welcome/pages.tsx";
import type { ReportMailUseCases } from "./welcome/report-mail.tsx";

/** What the pages show and change. */
export interface DashboardSlices {
  readonly runtime: Runtime;
  readonly accounts: AccountsSlice;
  readonly usage: UsageSlice;
  readonly suppressions: Suppressions;
  readonly verification: VerifySlice;
  readonly bounces: Bounces;
  readonly notifications: NotificationsSlice;
  readonly blocklist: BlocklistSlice;
  readonly bulk: BulkSlice;
  readonly dmarc: DmarcSlice;
  readonly doctor: Doctor;
  readonly machine: MachineAcknowledgements;
  /** Null where no backups are scheduled. */
  readonly backups: { request(): void; readonly stored: readonly unknown[] } | null;
  readonly readiness: { check(): { readonly reasons: readonly string[] } };
  /** What an operator must look at. */
  findings(): readonly PartFinding[];
}

export interface PagesOptions {
  /** The URL as set; null: links begin with the host of the request, and mail has none. */
  readonly linkUrl: string | null;
  /** Where the service is reached, as far as it knows without a request. */
  readonly baseUrl: string;
  readonly urlOf: UrlOfRequest;
  readonly retention: readonly RetentionFact[];
  /** Every type of event that is sent. */
  readonly eventTypes: readonly string[];
  readonly clientAddress: (request: Request) => string | null;
  readonly readFacts: () => ServiceFacts;
  readonly people: Pick<PersonalDataUseCases, "personalData" | "addressProblem">;
  readonly hasManual: boolean;
  readonly brand: Brand;
  readonly reportMail: ReportMailUseCases["reportMail"];
}

/** The dashboard with all its pages. */
export const openDashboard = (slices: DashboardSlices, options: PagesOptions): Dashboard => {
  const { runtime, accounts, usage, bulk, bounces, notifications, blocklist, verification } = slices;
  const { clock, log } = runtime;
  const { guard } = usage;
  const { guessedCodes, callerName: nameOf, store, credits, ledger, audit } = accounts;
  const { clientAddress, linkUrl } = options;
  const { mailing, rules } = notifications.outbound;
  const userMail = { mailer: mailing?.mailer ?? null, baseUrl: linkUrl, brandName: options.brand.name, log };
  accounts.sessions.onCodesGuessed(createCodeAlerts(userMail, guessedCodes));
  const board = new AttentionBoard(clock, [...attentionSources(slices), ...operatorSources(operatorFacts(slices))]);
  const steps = openFirstSteps(slices, options);
  const people = { ...accounts, accounts: store, clock, baseUrl: linkUrl, urlOf: options.urlOf, clientAddress };
  const starterName = (keyId: string): string => nameOf(keyId) ?? "a user or key that was removed";
  return new Dashboard({
    guard,
    clock,
    audit,
    clientAddress,
    hasManual: options.hasManual,
    brand: options.brand,
    baseUrl: options.baseUrl,
    isHttps: options.baseUrl.startsWith("https:"),
    findSession: createSessionFinder(accounts),
    routes: [
      ...PREFERENCES,
      ...createHomePages(homeUseCases(slices, { board, steps })),
      ...createBlocklistPages({ ...blocklist, rules, clock }),
      ...createListPages(
        {
          bulk: bulk.jobs,
          queries: bulk.queries,
          comparisons: bulk.comparisons,
          starterName,
          creditsThisMonth: (owner) => usage.usage.creditsThisMonth(owner, clock.nowMs()),
        },
        clock,
      ),
      ...dmarcPages(slices),
      ...createSignInPages({ ...people, onFirstUser: () => void slices.doctor.start() }),
      ...createProfilePages(people),
      ...createUserPages({ ...people, mail: createInvitationMail(userMail) }),
      ...createSearchPages(openSearch(slices)),
      ...createUsagePages({ usage: usage.usage, ledger, nameOf, clock }),
      ...createWebhookPages({
        webhooks: notifications.webhooks,
        notifications: notifications.settings,
        windows: notifications.outbound.windows,
        rules,
        types: options.eventTypes,
      }),
      ...createVerifyPages({ ...verification, bounces, guard, clock, nameOf, keysOf: (id) => store.listKeys(id) }),
      ...settingsPages(slices, options),
      ...createWelcomePages({ steps, clock, doctor: slices.doctor, reportMail: options.reportMail }),
    ].map(withRole),
    frameFacts: (viewer) => ({
      credits: credits.live.balance(viewer.account.id).available,
      attention: board.counts(viewer),
    }),
  });
};

const createSessionFinder =
  ({ sessions, store }: AccountsSlice) =>
  (token: string, isSecure: boolean): ActiveSession | undefined => {
    const session = sessions.find(token, isSecure);
    const account = session && store.findAccount(session.account.id);
    return session && account && { sessionId: session.id, csrfToken: session.csrfToken, user: session.user, account };
  };

/** What needs attention, by part of the product. */
const attentionSources = (slices: DashboardSlices): readonly AttentionSource[] => {
  const { accounts, notifications, blocklist, bulk, dmarc } = slices;
  return [
    {
      section: "settings",
      itemsOf: ({ account, mode, user }) =>
        mode === "test"
          ? []
          : accounts.guessedCodes.attention({
              accountId: account.id,
              userId: user.id,
              isOwner: user.role === "owner",
            }),
    },
    { section: "blocklists", itemsOf: ({ caller }) => blocklist.attention(caller).items },
    { section: "dmarc", itemsOf: ({ caller }) => dmarc.overview.attention(caller) },
    { section: "lists", itemsOf: ({ caller }) => bulk.queries.attention(caller) },
    { section: "webhooks", itemsOf: ({ caller }) => notifications.webhooks.endpoints.attention(caller) },
  ];
};

const openSearch = ({ runtime, verification, bulk, blocklist, dmarc }: DashboardSlices): Search => {
  const sources = new SourceSearch(runtime.db, dmarc.stores.domains);
  const { history } = verification;
  return new Search({ history, queries: bulk.queries, table: blocklist.table, overview: dmarc.overview, sources });
};

const operatorFacts = (slices: DashboardSlices) => () => ({
  machine: slices.machine.state(),
  blockers: slices.readiness.check().reasons,
  findings: slices.findings(),
});

const dmarcPages = ({ runtime, dmarc, blocklist, notifications }: DashboardSlices) => {
  const { mailing, rules } = notifications.outbound;
  const { domains, advise, overview, health, reports, shares, tags, domainHosting: hosting } = dmarc;
  const useCases = {
    clock: runtime.clock,
    rules,
    hasMail: mailing !== null,
    domains,
    shares,
    hosting,
    tags,
    advise,
    overview,
    health,
    ingestions: reports.ingestions,
    uploads: reports.uploads,
    findTarget: (owner: Owner, ip: string) => blocklist.store.findSame(owner, ip.includes(":") ? "ipv6" : "ipv4", ip),
    ...new DmarcReaders(dmarc),
  };
  return [...createDomainPages(useCases), ...createDmarcReportPages(useCases)];
};

const homeUseCases = (
  { runtime, accounts, usage, verification, bulk, blocklist, dmarc, machine }: DashboardSlices,
  given: Pick<HomeUseCases, "board" | "steps">,
): HomeUseCases => ({
  ...given,
  clock: runtime.clock,
  usage: usage.usage,
  history: verification.history,
  nameOf: accounts.callerName,
  machine,
  targets: ({ caller }) => blocklist.table.figures(caller),
  mailInName: ({ caller }) => dmarc.overview.mailInName(caller),
  runningLists: ({ caller }) => bulk.queries.running(caller),
  completedLists: ({ caller }, sinceMs) => bulk.queries.completedSince(caller, sinceMs),
  listingChanges: ({ caller }, sinceMs) => blocklist.table.changeCounts(caller, sinceMs),
  alertChanges: ({ caller }, sinceMs) => dmarc.overview.alertChanges(caller, sinceMs),
});

/** The first steps of users, by what the account and the service have. */
const openFirstSteps = (slices: DashboardSlices, { linkUrl }: PagesOptions): FirstSteps => {
  const { runtime, notifications, dmarc, machine, backups } = slices;
  return new FirstSteps(runtime.db, {
    store: new FirstStepsStore(runtime.db),
    setUp: ({ caller }) => ({
      machine: machine.state(),
      hasMail: notifications.outbound.mailing !== null,
      hasReportMail: dmarc.domains.destination(caller).reportHost !== null,
      hasBackup: backups !== null && backups.stored.length > 0,
      hasBaseUrl: linkUrl !== null,
    }),
  });
};

/** The pages of the settings, and the first steps. */
const settingsPages = (
  slices: DashboardSlices,
  { urlOf, linkUrl, brand, retention, readFacts, people }: PagesOptions,
) => {
  const { notifications, backups, suppressions, doctor, machine } = slices;
  const { clock } = slices.runtime;
  const { store, accounts, keys, audit, ledger, users } = slices.accounts;
  const { subscriptions, windows, mailing, rules } = notifications.outbound;
  return [
    ...createSettingsPages({
      clock,
      windows,
      urlOf,
      doctor,
      machine,
      suppressions,
      accounts,
      store,
      audit,
      retention,
      readFacts,
      ...people,
      keys: new OwnKeys(store, keys),
      notifications: notifications.settings,
      subscriptions,
      rules,
      hasMail: mailing !== null,
      sendTestMail: createTestMail({ mailer: mailing?.mailer ?? null, baseUrl: linkUrl, brandName: brand.name }),
      balance: (id) => ledger.balance(id),
      keyNames: (id) => new Map(store.listKeys(id).map((key) => [key.id, key.name])),
      userEmails: () => new Map(users.list().map(({ user }) => [user.id, user.email])),
      setByLink: createLinkSwitch(subscriptions, audit),
      accountName: (id) => store.findAccount(id)?.name ?? "",
      requestBackup: backups === null ? null : () => backups.request(),
    }),
  ];
};

/** Stops or resumes mail by its link. A person with the link can repeat the act, so only a change is in the audit log. */
const createLinkSwitch =
  (subscriptions: MailSubscriptions, audit: AuditLog): MailOffUseCases["setByLink"] =>
  async (token, isOn) => {
    const found = subscriptions.findByToken(token);
    if (found === undefined) return undefined;
    const { accountId, kind } = found;
    // Not the recipient: entries of the audit log cannot be erased.
    const action = { action: mailAction(isOn), accountId, subject: null, after: { kind }, byLink: true };
    return audit.perform({ action, work: () => subscriptions.set(found, isOn), isRecordedUnchanged: () => false });
  };
