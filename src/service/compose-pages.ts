import { composeDashboard } from "./compose-dashboard.ts";
import { composeDmarcReaders } from "./compose-dmarc-readers.ts";
import { mailerOf } from "./compose-platform.ts";
import { composeCodeAlerts, composeInvitations } from "./compose-invitations.ts";
import { composeSettings } from "./compose-settings.ts";
import type { ServiceOptions, UseCases } from "./compose.ts";
import { createApplication, type HttpApplication } from "./http-application.ts";
import type { ClientAddresses } from "../foundation/http/client-addresses.ts";

/** What the pages of users need of the settings and the server. */
const composeSignIn = ({ config, log }: ServiceOptions, clients: ClientAddresses) => ({
  baseUrl: config.baseUrl,
  mailInvitation: composeInvitations(config, log),
  clientAddress: (request: Request) => clients.of(request),
});

/** The dashboard as an application. */
export const composePages = (
  useCases: UseCases,
  options: ServiceOptions,
  clients: ClientAddresses,
): HttpApplication => {
  const { runtime, administration, webhooks, blocklist, bulk, dmarc, doctor } = useCases;
  const { clock, log } = runtime;
  const { guessedCodes } = administration;
  administration.sessions.onCodesGuessed(
    composeCodeAlerts({ mailer: mailerOf(options.config), baseUrl: options.config.baseUrl, log }, guessedCodes),
  );
  const dashboard = composeDashboard({
    ...{ ...administration, ...composeSignIn(options, clients) },
    ...{ clock, guard: useCases.guard, sessions: administration.sessions, accounts: administration.store },
    ...{ credits: administration.credits, isHttps: options.baseUrl.startsWith("https:") },
    ...{ lists: bulk, callerName: administration.callerName },
    home: {
      targets: ({ caller }) => blocklist.attention(caller).figures,
      mailInName: ({ caller }) => dmarc.overview.mailInName(caller),
    },
    attention: [
      {
        section: "settings",
        itemsOf: ({ account, mode, user }) =>
          mode === "test"
            ? []
            : guessedCodes.attention({ accountId: account.id, userId: user.id, isOwner: user.role === "owner" }),
      },
      { section: "blocklists", itemsOf: ({ caller }) => blocklist.attention(caller).items },
      { section: "dmarc", itemsOf: ({ caller }) => dmarc.overview.attention(caller) },
      { section: "lists", itemsOf: ({ caller }) => bulk.queries.attention(caller) },
      { section: "webhooks", itemsOf: ({ caller }) => webhooks.webhooks.endpoints.attention(caller) },
    ],
    serviceState: () => {
      const { reasons: blockers } = useCases.readiness.check();
      return { examination: doctor.latestFindings(), blockers, findings: useCases.serviceFindings() };
    },
    verify: { ...useCases.verification, nameOf: administration.callerName },
    usage: { usage: useCases.usage.usage, ledger: administration.ledger, nameOf: administration.callerName, clock },
    webhooks,
    blocklist: { ...blocklist, rules: webhooks.rules },
    dmarcReports: { ...dmarc.pages, ...composeDmarcReaders(dmarc) },
    settings: composeSettings(useCases, options),
  });
  const errorPage = dashboard.errorPage.bind(dashboard);
  return createApplication({ log, clock, routes: [dashboard.routes()], errorPage });
};
