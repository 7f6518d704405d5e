import { z } from "zod";
import { declareRoute, handle } from "../foundation/http/route.ts";
import {
  countField,
  listField,
  namedBody,
  namedResponse,
  okResponse,
  textField,
  textsField,
} from "../foundation/http/schema-fields.ts";
import type { Caller } from "../foundation/http/guard.ts";
import { AppError } from "../foundation/base/errors.ts";
import type { DmarcOverview, TagFigures } from "./alerts/overview/dmarc-overview.ts";
import { digest, domainRecipients } from "./domain-schemas.ts";
import { MONITORING_TAG } from "./insight/queries/domain-query.ts";
import { percentOf } from "./insight/sources/rollup-rows.ts";
import { tagSchema } from "./records/domains/enrolments.ts";
import type { TagDigest } from "./records/domains/tag-digest-store.ts";
import type { TagDigestChange, TagDigests } from "./records/domains/tag-digests.ts";

const figuresSchema = namedResponse("DmarcTag", {
  tag: textField("The tag."),
  domains: countField("Domains with it."),
  messages: countField("Messages of the last 30 days in reports about these domains."),
  aligned: countField("Messages that passed DMARC."),
  aligned_percent: z.number().nullable().describe("Share of aligned messages in percent; null without messages."),
  actionable: countField("Failing messages that somebody must act on: neither forwarded nor forged."),
  open_alerts: countField("Alerts of these domains that still hold and that nobody acknowledged."),
  digest: digest.describe(
    "How often a digest about these domains is mailed to `recipients`, beside the digests of the domains.",
  ),
  recipients: textsField("Addresses that the digest is sent to."),
});

/** A tag exactly as the API returns it. */
export type ShownTag = Readonly<z.output<typeof figuresSchema>>;

const viewOf = (figures: TagFigures, settings: TagDigest | undefined): ShownTag => ({
  tag: figures.tag,
  domains: figures.domains,
  messages: figures.messages,
  aligned: figures.aligned,
  aligned_percent: percentOf(figures.aligned, figures.messages),
  actionable: figures.actionable,
  open_alerts: figures.openAlerts,
  digest: settings?.digest ?? "off",
  recipients: [...(settings?.recipients ?? [])],
});

/** The tags of the caller's domains with their figures and digests. */
export class DomainTags {
  constructor(
    private readonly overview: Pick<DmarcOverview, "tags">,
    private readonly digests: TagDigests,
  ) {}

  list(caller: Caller): readonly ShownTag[] {
    const settings = this.digests.byTag(caller);
    return this.overview.tags(caller).map((figures) => viewOf(figures, settings.get(figures.tag)));
  }

  /** Throws `not_found` for a tag that no domain has. */
  find(caller: Caller, tag: string): ShownTag {
    const found = this.list(caller).find((one) => one.tag === tag);
    if (found === undefined) throw new AppError("not_found", { message: `No domain has the tag "${tag}".` });
    return found;
  }

  async change(caller: Caller, tag: string, change: TagDigestChange): Promise<ShownTag> {
    await this.digests.change(caller, tag, change);
    return this.find(caller, tag);
  }
}

const EXAMPLE: ShownTag = {
  tag: "client-a",
  domains: 12,
  messages: 39_000,
  aligned: 38_700,
  aligned_percent: 99.2,
  actionable: 42,
  open_alerts: 1,
  digest: "monthly",
  recipients: ["it@client-a.example"],
};

const LIST_TAGS = declareRoute({
  method: "GET",
  path: "/v1/dmarc/tags",
  operationId: "listDmarcTags",
  tag: MONITORING_TAG,
  summary: "List the tags of domains with their figures and digests",
  description:
    "In alphabetical order, at most 1,000. A domain counts for each of its tags. The counts are those of the list of domains, computed within a minute after a change.",
  scope: "dmarc:read",
  responses: {
    200: okResponse("The tags.", namedResponse("DmarcTagList", { tags: listField(figuresSchema, "The tags.") }), {
      tags: [EXAMPLE],
    }),
  },
});

const SET_TAG = declareRoute({
  method: "PATCH",
  path: "/v1/dmarc/tags/:tag",
  operationId: "setDmarcTag",
  tag: MONITORING_TAG,
  summary: "Set the digest about the domains with a tag",
  description:
    "One mail about all domains that have the tag when it is sent, beside the digests of the domains themselves. A recipient who gets both gets each domain once. Absent fields are unchanged.",
  scope: "dmarc:write",
  params: z.object({ tag: tagSchema.describe("The tag.") }),
  body: {
    schema: namedBody("DmarcTagChange", { digest: digest.optional(), recipients: domainRecipients.optional() }),
    example: { digest: "monthly", recipients: ["it@client-a.example"] },
  },
  responses: { 200: okResponse("The tag.", figuresSchema, EXAMPLE) },
});

/** The routes of tags, as they are declared. */
export const TAG_ROUTES = [LIST_TAGS, SET_TAG] as const;

/** The same routes with their handlers. */
export const createTagRoutes = (tags: DomainTags) => [
  handle(LIST_TAGS, ({ caller }) => ({ tags: tags.list(caller) })),
  handle(SET_TAG, ({ caller, params, body }) => tags.change(caller, params.tag, body)),
];
