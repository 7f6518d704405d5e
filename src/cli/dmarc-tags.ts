import { domainRecipients } from "../dmarc/domain-schemas.ts";
import type { ShownTag } from "../dmarc/tag-routes.ts";
import { DIGESTS } from "../dmarc/records/domains/domain-store.ts";
import { tagSchema } from "../dmarc/records/domains/enrolments.ts";
import { argument, choice, command, group, option, type Terminal } from "./command.ts";
import { UsageError } from "./io.ts";
import { changeOf, inService, readRecipients } from "./service.ts";

const tableOf = ({ table }: Terminal, tags: readonly ShownTag[]): string =>
  tags.length === 0
    ? "No domain has a tag."
    : table(
        ["TAG", "DOMAINS", "MESSAGES", "ALIGNED %", "TO ACT ON", "OPEN ALERTS", "DIGEST", "RECIPIENTS"],
        tags.map((one) => [
          ...[one.tag, String(one.domains), String(one.messages), String(one.aligned_percent ?? "")],
          ...[String(one.actionable), String(one.open_alerts), one.digest, one.recipients.join(" ")],
        ]),
      );

const readTag = (text: string): string => {
  const read = tagSchema.safeParse(text);
  if (read.success) return read.data;
  throw new UsageError(`"${text}": ${read.error.issues[0]?.message ?? "not a tag"}.`, "tag");
};

/** `dmarc tags`: figures and digests of groups of domains. */
export const TAGS = group(
  {
    description: "List the tags of domains with their figures, and set their digests.",
    example: "dmarc tags list",
  },
  {
    list: command({
      description: "List the tags with the figures of their domains of 30 days and their digests.",
      example: "dmarc tags list",
      on: inService("domains"),
      run(context) {
        const tags = context.service.dmarc.tags.list(context.caller);
        context.print({ tags }, () => tableOf(context, tags));
      },
    }),
    digest: command({
      description: 'Set the digest about all domains with a tag; "" removes the recipients.',
      example: "dmarc tags digest client-a --period monthly --recipient it@client-a.example",
      on: inService("domains"),
      args: { tag: argument("<tag>", "a tag of domains") },
      options: {
        period: choice("<period>", DIGESTS, "how often it is mailed"),
        recipient: option("<address...>", "addresses that it is sent to"),
      },
      async run(context, { tag: text, period, recipient }) {
        const tag = readTag(text);
        const change = changeOf({
          digest: period,
          recipients: recipient && readRecipients(domainRecipients, recipient),
        });
        const done = { action: "dmarc.tags.set", subject: tag, after: { digest: period ?? null } };
        const set = await context.perform(done, () => context.service.dmarc.tags.change(context.caller, tag, change));
        context.print(set, () => tableOf(context, [set]));
      },
    }),
  },
);
