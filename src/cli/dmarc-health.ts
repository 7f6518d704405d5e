import type { Command } from "commander";
import { systemClock } from "../foundation/base/clock.ts";
import { openHealthCheck } from "../dmarc/open.ts";
import { freshResolverOf } from "../service/platform.ts";
import { parseMonitoredDomain } from "../dmarc/records/domains/parse-domain.ts";
import type { DomainHealth } from "../dmarc/insight/health/health-schema.ts";
import { isSelector, SELECTORS_MAX, type SelectorToCheck } from "../dmarc/insight/health/selectors.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { healthText } from "./dmarc-health-text.ts";
import { addCommand } from "./command.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { loadConfig } from "./prepare-directory.ts";

interface HealthOptions {
  readonly selector?: readonly string[];
  readonly json?: boolean;
}

/** Exit status when not everything could be checked. */
const EXIT_UNKNOWN = 4;

const readDomain = (text: string): string => {
  const live = parseMonitoredDomain(text, "live");
  if (live.ok) return live.value;
  throw new UsageError(live.error, "domain");
};

const readSelectors = (given: readonly string[], signer: string): readonly SelectorToCheck[] => {
  const selectors = [...new Set(given.flatMap((text) => text.toLowerCase().split(",")))];
  const wrong = selectors.find((selector) => !isSelector(selector));
  if (wrong !== undefined) throw new UsageError(`"${wrong}" is not a DKIM selector.`, "selector");
  if (selectors.length > SELECTORS_MAX) throw new UsageError(`Give at most ${SELECTORS_MAX} selectors.`, "selector");
  return selectors.map((selector) => ({ selector, signer, origin: "request", seen: null }));
};

const failOn = ({ domain, status }: DomainHealth): void => {
  if (status === "problems") throw new CommandFailed(`${domain} has problems.`, "problems");
  if (status === "unknown")
    throw new CommandFailed(`Not everything of ${domain} could be checked.`, "unknown", EXIT_UNKNOWN);
};

/** `dmarc health`: checks the DNS records of any domain, without a database. */
export const addDmarcHealthCommand = (group: Command, io: Io): void => {
  addCommand(group, "health", {
    description: "Check the SPF, DKIM, DMARC, MX, MTA-STS, TLS-RPT and BIMI records of any domain.",
    example: "dmarc health example.com --selector mail",
  })
    .argument("<domain>", "domain in the From address of mails")
    .option("--selector <name...>", "DKIM selectors (default: 20 common ones)")
    .addHelpText("after", "\nExit status: 0 no problems, 1 problems, 4 not everything could be checked.")
    .action(async (text: string, { selector = [], json }: HealthOptions) => {
      const domain = readDomain(text);
      const selectors = readSelectors(selector, domain);
      const config = loadConfig(io);
      const resolver = freshResolverOf(config);
      try {
        const check = openHealthCheck({ clock: systemClock, resolver }, createUrlPolicy(config.webhookAllowNetworks));
        const health = await check({ domain, selectors });
        print(io, json, health, () => healthText(health, io.columns));
        failOn(health);
      } finally {
        resolver.close();
      }
    });
};
