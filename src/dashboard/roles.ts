import type { PageRoute } from "./page.ts";
import type { Access, Role } from "./visit.ts";

/**
 * How a form gets into the audit log: by its `action`, which the dashboard writes in the transaction of the change; by the `useCase`,
 * which does the same; or not at all, because `none` of the account is changed, with the reason.
 */
type Recorded = { readonly action: string } | { readonly useCase: string } | { readonly none: string };

interface RoleRules {
  readonly role: Exclude<Access, "anyone">;
  /** The words of the guide to the dashboard about the role. */
  readonly may: string;
  readonly forms: Readonly<Record<string, Recorded>>;
  /** Pages that only this role and higher ones may open; those of a viewer are the only ones for it. A member opens all others. */
  readonly pages: readonly string[];
}

const action = (name: string): Recorded => ({ action: name });
const useCase = (name: string): Recorded => ({ useCase: name });
const none = (reason: string): Recorded => ({ none: reason });

const VIEWER_FORMS = {
  "/settings/profile/password": useCase("users.password"),
  "/settings/profile/time-zone": action("users.time-zone"),
  "/settings/profile/sessions/:id/end": action("users.sign-out"),
  "/settings/profile/codes/enrol": action("users.second-factor.begin"),
  "/settings/profile/codes/cancel": action("users.second-factor.cancel"),
  "/settings/profile/codes/confirm": useCase("users.second-factor.on"),
  "/settings/profile/codes": useCase("users.second-factor"),
  "/sign-out": action("users.sign-out"),
  "/sign-out/everywhere": action("users.sign-out"),
} as const;

/** The pages of one domain that show nothing of others. */
const VIEWER_PAGES = [
  "/dmarc",
  "/dmarc.csv",
  "/dmarc/:id",
  "/dmarc/:id/month",
  "/dmarc/:id/sources",
  "/dmarc/:id/sources.csv",
  "/dmarc/:id/sources/:key",
  "/dmarc/:id/sources/:key/addresses.csv",
  "/dmarc/:id/own-hosts",
  "/dmarc/:id/own-hosts.csv",
  "/dmarc/:id/record",
  "/dmarc/:id/advice",
  "/dmarc/:id/health",
  "/dmarc/:id/record-history",
  "/dmarc/:id/reports",
  "/dmarc/:id/reports.csv",
  "/dmarc/:id/tls",
  "/dmarc/:id/alerts",
  "/settings/profile",
];

const MEMBER_FORMS = {
  "/verify": none("the verification itself names its user"),
  "/verify/:id/delete": action("verifications.remove"),
  "/lists/upload": none("a draft of the user, which expires after an hour"),
  "/lists/new/discard": none("a draft of the user, which expires after an hour"),
  "/lists/new": action("jobs.add"),
  "/lists/:id/cancel": action("jobs.cancel"),
  "/lists/:id/retry": action("jobs.retry"),
  "/lists/:id/delete": action("jobs.remove"),
  "/dmarc/intake": action("dmarc.reports.upload"),
  "/dmarc/intake/retry": action("dmarc.reports.retry"),
  "/dmarc/intake/:ingestion/retry": action("dmarc.reports.retry"),
  "/dmarc/:id/record/check": action("dmarc.domains.check"),
  "/dmarc/:id/health/run": action("dmarc.domains.health"),
  "/dmarc/:id/classify": action("dmarc.classify"),
  "/dmarc/:id/sources/:key/class": action("dmarc.classify"),
  "/dmarc/:id/sources/:key/bulk": action("dmarc.bulk-senders"),
  "/dmarc/:id/alerts/:alert/acknowledge": action("dmarc.alerts.acknowledge"),
  // The form names its act itself: also targets.pause, targets.resume and targets.remove.
  "/blocklists/bulk": action("targets.check"),
  "/blocklists/:id/check": action("targets.check"),
  "/blocklists/:id/unmute": action("targets.unmute"),
  "/blocklists/:id/listings/:listing/mute": action("targets.mute"),
  "/blocklists/:id/listings/:listing/note": action("targets.note"),
  "/blocklists/:id/listings/:listing/requested": action("targets.delisting-requested"),
  "/blocklists/:id/listings/:listing/acknowledged": action("targets.acknowledge"),
  "/welcome/hide": action("users.first-steps"),
  "/welcome/show": action("users.first-steps"),
  "/blocklists/lists/:list/test": none("one query of a list, which changes nothing"),
} as const;

const OWNER_FORMS = {
  "/dmarc/new": action("dmarc.domains.add"),
  "/dmarc/:id/delete": action("dmarc.domains.remove"),
  "/dmarc/:id/pause": action("dmarc.domains.update"),
  "/dmarc/:id/settings": action("dmarc.domains.update"),
  "/dmarc/:id/alerts/rules": action("dmarc.domains.update"),
  "/dmarc/:id/mta-sts": action("dmarc.mta-sts"),
  "/dmarc/tags/:tag": action("dmarc.tags.set"),
  "/dmarc/:id/shares": action("dmarc.shares.add"),
  "/dmarc/:id/shares/:share/revoke": action("dmarc.shares.revoke"),
  "/dmarc/:id/rules": action("dmarc.rules.add"),
  "/dmarc/:id/rules/remove": action("dmarc.rules.remove"),
  "/dmarc/reporters/:reporter/accept": action("dmarc.reporters.accept"),
  "/dmarc/reporters/:reporter/withdraw": action("dmarc.reporters.withdraw"),
  "/blocklists/new": action("targets.add"),
  "/blocklists/discover": none("what was found is only shown"),
  "/blocklists/found": action("targets.add"),
  "/blocklists/:id/monitoring": action("targets.update"),
  "/blocklists/:id/settings": action("targets.update"),
  "/webhooks/default": action("notifications.set"),
  "/webhooks/test": action("webhooks.test"),
  "/webhooks/deliveries/:id/redeliver": action("webhooks.redeliver"),
  "/webhooks/deliveries/:id/cancel": action("webhooks.cancel"),
  "/webhooks/secret/show": action("webhooks.secret.show"),
  "/webhooks/secret/rotate": action("webhooks.rotate"),
  "/settings/account": useCase("accounts.rename"),
  "/settings/keys": useCase("keys.create"),
  "/settings/keys/publishable": useCase("keys.create"),
  "/settings/keys/:id/publishable": useCase("keys.change"),
  "/settings/keys/:id/rotate": useCase("keys.rotate"),
  "/settings/keys/:id/revoke": useCase("keys.revoke"),
  "/settings/notifications": action("notifications.set"),
  "/settings/notifications/test-mail": none("a mail to the user, which changes nothing"),
  // The form names its act itself: notifications.stop or notifications.resume.
  "/settings/notifications/mail": action("notifications.stop"),
  "/settings/notifications/windows": action("notifications.windows.add"),
  "/settings/notifications/windows/weekly": action("notifications.windows.add"),
  "/settings/notifications/windows/remove": action("notifications.windows.remove"),
  "/settings/users": useCase("users.add"),
  "/settings/users/:id/role": useCase("users.role"),
  "/settings/users/:id/remove": useCase("users.remove"),
  "/settings/users/:id/reset": useCase("users.reset"),
} as const;

const OWNER_OR_OPERATOR_FORMS = {
  "/settings/personal-data/find": none("a search, which changes nothing"),
  "/settings/personal-data/export": action("data.export"),
} as const;

const OPERATOR_FORMS = {
  "/settings/account/credits": useCase("credits.grant"),
  "/settings/account/plan": useCase("accounts.set-plan"),
  "/settings/personal-data/erase": useCase("erase"),
  "/settings/sender": action("doctor.run"),
  "/settings/service/backup": action("backup.request"),
  "/settings/suppressions": action("suppress.add"),
  "/settings/suppressions/remove": action("suppress.remove"),
  "/welcome/check": action("doctor.run"),
  "/welcome/report-mail": none("two DNS queries, which change nothing"),
  "/machine/:warning/acknowledge": action("doctor.acknowledge"),
  "/machine/:warning/withdraw": action("doctor.withdraw"),
} as const;

/** What each role may do. The pages, the forms and the guide follow this table; an operator is a member or an owner, too. */
export const ROLES: readonly RoleRules[] = [
  {
    role: "viewer",
    may: "read the DMARC pages of the domains with one tag, and nothing else; change the own profile",
    forms: VIEWER_FORMS,
    pages: VIEWER_PAGES,
  },
  {
    role: "member",
    may: "verify addresses, upload lists and reports, read everything of the account but its keys, users and audit log, and act on alerts: acknowledge, mute, classify senders, check now",
    forms: MEMBER_FORMS,
    // Named, because it has the form of a page of a domain.
    pages: ["/dmarc/intake"],
  },
  {
    role: "owner",
    may: "also enroll, change and delete domains and blocklist targets, and manage webhooks, notifications, keys, users and the account",
    forms: OWNER_FORMS,
    pages: [
      "/dmarc/new",
      "/dmarc/:id/delete",
      "/blocklists/new",
      "/webhooks/secret",
      "/settings/audit",
      "/settings/audit.csv",
      "/settings/keys",
      "/settings/keys/:id",
      "/settings/users",
      "/settings/users/:id",
    ],
  },
  {
    role: "owner or operator",
    may: "also find and export what is stored about a person, and export the account",
    forms: OWNER_OR_OPERATOR_FORMS,
    pages: ["/settings/personal-data"],
  },
  {
    role: "operator",
    may: "also see and change what concerns the whole service: suppression list, sending identity and its warnings, report mail, backups, service page, credits and plan of the account; erase a person",
    forms: OPERATOR_FORMS,
    pages: [
      "/settings/sender",
      "/settings/service",
      "/settings/suppressions",
      "/settings/suppressions.csv",
      "/welcome/report-mail",
    ],
  },
];

/** Acts of the form of several targets that need an owner. */
export const OWNER_ACTS: readonly string[] = ["pause", "resume", "delete", "delete-confirmed"];

interface Rule {
  readonly role: Access;
  readonly recorded: Recorded;
}

const RULES = new Map<string, Rule>(
  ROLES.flatMap(({ role, forms, pages }) => [
    ...Object.entries(forms).map(([path, recorded]) => [`POST ${path}`, { role, recorded }] as const),
    ...pages.map((path) => [`GET ${path}`, { role, recorded: none("a page") }] as const),
  ]),
);

/** The route with the role that the table gives it. Throws for a form that is not in the table. */
export const withRole = (route: PageRoute): PageRoute => {
  if (route.access === "anyone") return route;
  const rule = RULES.get(`${route.method} ${route.path}`);
  if (rule === undefined && route.method === "POST") throw new Error(`No role may send the form ${route.path}`);
  if (rule === undefined) return route;
  const { role, recorded } = rule;
  return { ...route, access: role, action: "action" in recorded ? recorded.action : null };
};

/** What the paths of one length in one section have in common. */
const groupOf = (parts: readonly string[]): string => `${parts.length} ${parts[1]}`;

/** The paths with parameters among `paths`, split at their slashes, by their groups. */
const patternsOf = (paths: (rules: RoleRules) => readonly string[]) => {
  const patterns = ROLES.flatMap((rules) =>
    paths(rules)
      .filter((path) => path.includes("/:"))
      .map((path) => ({ role: rules.role, parts: path.split("/") })),
  );
  return Map.groupBy(patterns, ({ parts }) => groupOf(parts));
};
const FORM_PATTERNS = patternsOf(({ forms }) => Object.keys(forms));
const PAGE_PATTERNS = patternsOf(({ pages }) => pages);

const roleOf = (method: "GET" | "POST", path: string): Access | undefined => {
  const [bare = ""] = path.split(/[?#]/, 1);
  const exact = RULES.get(`${method} ${bare}`);
  if (exact !== undefined) return exact.role;
  const given = bare.split("/");
  const patterns = (method === "POST" ? FORM_PATTERNS : PAGE_PATTERNS).get(groupOf(given));
  return patterns?.find(({ parts }) => parts.every((part, at) => part.startsWith(":") || part === given[at]))?.role;
};

/** The role that a form with this `action` needs; "anyone" for forms of visitors, which are not in the table. */
export const roleOfForm = (path: string): Access => roleOf("POST", path) ?? "anyone";

/** The role that a page needs. */
export const roleOfPage = (path: string): Access => roleOf("GET", path) ?? "anyone";

/** Whether a viewer may open a page: only those of the table. */
export const isViewerPage = (path: string): boolean => roleOf("GET", path) === "viewer";

/** Whether a user has a role. */
export const hasRole = (
  access: Access,
  user: { readonly role: Role; readonly isOperator: boolean } | undefined,
): boolean => {
  if (access === "anyone") return true;
  if (user === undefined) return false;
  if (access === "operator") return user.isOperator;
  if (access === "owner or operator") return user.isOperator || user.role === "owner";
  if (access === "viewer") return true;
  return access === "member" ? user.role !== "viewer" : user.role === "owner";
};
