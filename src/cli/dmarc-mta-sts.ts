import { evidenceOfView, HOSTING_MODES, type HostingView } from "../dmarc/insight/sts/hosting-routes.ts";
import { argument, choice, command, group, required, toggle } from "./command.ts";
import { findDomain, onDomain } from "./dmarc-domains.ts";
import { tableTime } from "./terminal-text.ts";

const textOf = (domain: string, view: HostingView): string =>
  view.mode === "off"
    ? `No policy is served for ${domain}. \`postwarden dmarc mta-sts set ${domain} testing\` begins.`
    : [
        `Mode: ${view.mode} since ${tableTime(view.mode_since, "")}`,
        ...(view.problem === null ? [] : [`Problem: ${view.problem}; the policy stays as it is.`]),
        `Record in the DNS: ${view.record_state}`,
        ...view.dns_records.map(
          ({ host, type, value }) => `Publish: ${host}  ${type}  ${value ?? "(host name of this service)"}`,
        ),
        ...(view.serve_until === null ? [] : [`Serve it until ${tableTime(view.serve_until, "")}.`]),
        ...(view.mode === "testing" ? [evidenceOfView(view)] : []),
        "",
        (view.policy ?? "").replaceAll("\r", "").trimEnd(),
      ].join("\n");

/** `dmarc mta-sts`: the policies that the service serves for domains. */
export const MTA_STS = group(
  {
    description: "Serve the MTA-STS policy of a domain (RFC 8461).",
    example: "dmarc mta-sts set example.com testing",
  },
  {
    show: command({
      description: "Show the policy that is served for a domain, and the DNS records to publish.",
      ...onDomain,
      example: "dmarc mta-sts show example.com",
      run(context, { text }) {
        const { id, domain } = findDomain(context, text);
        const view = context.service.dmarc.domainHosting.view(context.caller, id);
        context.print(view, () => textOf(domain, view));
      },
    }),
    set: command({
      description: "Serve, enforce or withdraw the policy of a domain.",
      example: "dmarc mta-sts set example.com testing",
      on: onDomain.on,
      args: {
        text: argument("<domain>", "enrolled domain or its id"),
        to: required(
          choice("<mode>", HOSTING_MODES, "begin with testing; none withdraws a policy, off ends serving it"),
        ),
      },
      options: { early: toggle("enforce before two weeks of clean TLS reports") },
      async run(context, { text, to: mode, early }) {
        const { id, domain } = findDomain(context, text);
        const done = { action: "dmarc.mta-sts", subject: domain, after: { mode } };
        const view = await context.perform(done, () =>
          context.service.dmarc.domainHosting.set(context.caller, id, { mode, early }),
        );
        context.print(view, () => textOf(domain, view));
      },
    }),
  },
);
