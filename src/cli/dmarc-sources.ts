import { Argument, type Command, Option } from "commander";
import { systemClock } from "../foundation/base/clock.ts";
import { rangeOf } from "../dmarc/insight/queries/domain-query.ts";
import { SourceClassifier, DomainSources } from "../dmarc/insight/sources/domain-sources.ts";
import { CLASSIFICATIONS, type Classification } from "../dmarc/insight/sources/rollup-store.ts";
import { isSourceKey } from "../dmarc/insight/sources/source-identity.ts";
import type { Source } from "../dmarc/insight/sources/source-response.ts";
import type { Advice } from "../dmarc/insight/advice/advice-model.ts";
import { type AccountOptions, addCommand, ofAccount, readLimit } from "./command.ts";
import { findDomain } from "./dmarc-domains.ts";
import { type Io, print, UsageError } from "./io.ts";
import { type CommandService, withService } from "./service.ts";
import { table, wrapText } from "./terminal-text.ts";

const SHOWN_DEFAULT = 50;
const SHOWN_MAX = 10_000;

const sourceTable = (sources: readonly Source[], { columns }: Io): string =>
  table(
    ["KEY", "NAME", "CLASS", "MESSAGES", "ALIGNED %", "FAILING"],
    sources.map(({ key, name, classification, classified_by, messages, aligned_percent, failing }) => [
      ...[key, name, classification + (classified_by === "user" ? " *" : "")],
      ...[messages, aligned_percent ?? "", failing].map(String),
    ]),
    columns,
  );

interface SourcesOptions extends AccountOptions {
  readonly class?: Classification;
  readonly byNetwork?: boolean;
  readonly limit: string;
}

/** `dmarc sources`, `dmarc classify`, `dmarc advice` */
export const addSourceCommands = (group: Command, io: Io): void => {
  addSourceList(group, io);
  addClassify(group, io);
  addAdvice(group, io);
};

const addSourceList = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "sources", {
      description: "List who sends in the name of a domain, by the reports of the last 30 days.",
      example: "dmarc sources example.com --class unknown",
    }),
    "domains",
  )
    .argument("<domain>", "enrolled domain or its id")
    .addOption(new Option("--class <class>", "only this class").choices([...CLASSIFICATIONS]))
    .option("--by-network", "list each network of unauthenticated mail")
    .option("--limit <n>", `how many, up to ${SHOWN_MAX}`, String(SHOWN_DEFAULT))
    .action((text: string, options: SourcesOptions) => {
      const limit = readLimit(options.limit, SHOWN_MAX);
      return withService(io, options, async (command) => {
        const { rollups } = command.service.dmarc;
        const sources = new DomainSources(rollups, findDomain(command, text))
          .sources(rangeOf({}, systemClock.nowMs()), { byNetwork: options.byNetwork === true })
          .filter(({ classification }) => options.class === undefined || classification === options.class)
          .slice(0, limit);
        print(io, options.json, { sources }, () => sourceTable(sources, io));
      });
    });

const AUTOMATIC = "automatic";

const addClassify = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "classify", {
      description: "Say what sources are; this overrides the automatic classification.",
      example: "dmarc classify example.com authorized org:example.net",
    }),
    "domains",
  )
    .argument("<domain>", "enrolled domain or its id")
    .addArgument(
      new Argument("<class>", `what they are; ${AUTOMATIC} restores the automatic classification`).choices([
        ...CLASSIFICATIONS,
        AUTOMATIC,
      ]),
    )
    .argument("<key...>", "keys of sources, as `dmarc sources` shows them")
    .action((text: string, kind: Classification | typeof AUTOMATIC, keys: string[], options: AccountOptions) => {
      const wrong = keys.find((key) => !isSourceKey(key));
      if (wrong !== undefined) throw new UsageError(`"${wrong}" is not the key of a source.`, "key");
      return withService(io, options, async (command) => {
        const { id, domain } = findDomain(command, text);
        const done = { action: "dmarc.classify", subject: domain, after: { keys, class: kind } };
        const change = { keys, classification: kind === AUTOMATIC ? null : kind };
        const sources = await command.perform(done, () => classify(command, id, change));
        print(io, options.json, { sources }, () => sourceTable(sources, io));
      });
    });

const classify = (
  { service: { dmarc }, db, caller }: CommandService,
  id: string,
  change: { readonly keys: readonly string[]; readonly classification: Classification | null },
): Promise<Source[]> => {
  const classifier = new SourceClassifier({ db, clock: systemClock }, dmarc.rollups);
  return classifier.classify(() => dmarc.domains.find(caller, id), change);
};

/** The advice in lines of at most `columns` characters. */
const adviceText = ({ stage, next, requirements, notes }: Advice, columns: number): string => {
  const marked = (mark: string, text: string): string[] =>
    wrapText(text, Math.max(40, columns) - mark.length).map(
      (line, at) => `${at === 0 ? mark : " ".repeat(mark.length)}${line}`,
    );
  return [
    `Stage: ${stage}`,
    ...(next === null
      ? ["Nothing is left to do."]
      : [
          ...marked("Next: ", `${next.action}. ${next.why}`),
          ...next.steps.flatMap((step) => marked("  - ", step)),
          ...(next.record === null ? [] : [`  Publish at _dmarc: ${next.record}`]),
        ]),
    ...requirements.flatMap(({ met, message }) => marked(met ? "[x] " : "[ ] ", message)),
    ...notes.flatMap(({ message }) => marked("Note: ", message)),
  ].join("\n");
};

const addAdvice = (group: Command, io: Io): Command =>
  ofAccount(
    addCommand(group, "advice", {
      description: "Show the next step of a domain towards enforcement.",
      example: "dmarc advice example.com",
    }),
    "domains",
  )
    .argument("<domain>", "enrolled domain or its id")
    .action((text: string, options: AccountOptions) =>
      withService(io, options, async (command) => {
        const advice = await command.service.dmarc.advise(findDomain(command, text));
        print(io, options.json, advice, () => adviceText(advice, io.columns));
      }),
    );
