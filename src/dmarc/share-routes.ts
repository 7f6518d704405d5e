import { z } from "zod";
import { isoTime } from "../foundation/base/clock.ts";
import { declareRoute, handle } from "../foundation/http/route.ts";
import { idParameter } from "../foundation/http/route-input.ts";
import {
  idField,
  labelSchema,
  listField,
  namedBody,
  namedResponse,
  nullableText,
  nullableTime,
  okResponse,
  textField,
  timeField,
} from "../foundation/http/schema-fields.ts";
import { DOMAIN_PATH, DOMAIN_REPORTS, domainParams, type QueryContext } from "./insight/queries/domain-query.ts";
import type { ReportShare } from "./records/domains/share-store.ts";
import { OPEN_SHARES_MAX, type ReportShares, SHARE_DAYS_MAX } from "./records/domains/shares.ts";

const PATH = `${DOMAIN_PATH}/report-links`;

const linkFields = {
  id: idField("Identifier of the link."),
  note: nullableText("For whom it is; null for none."),
  created_at: timeField("When it was created."),
  expires_at: timeField("When it ends."),
  revoked_at: nullableTime("When it was revoked; null if it was not."),
  last_used_at: nullableTime("When it was last opened, to the hour; null if it never was."),
};
const linkSchema = namedResponse("DmarcReportLink", linkFields);
const newLinkSchema = namedResponse("DmarcNewReportLink", {
  ...linkFields,
  url: textField("The link. It is returned only once."),
});

/** A link as the API returns it. */
export const shareView = ({ id, note, createdAtMs, expiresAtMs, revokedAtMs, lastUsedAtMs }: ReportShare) => ({
  id,
  note,
  created_at: isoTime(createdAtMs),
  expires_at: isoTime(expiresAtMs),
  revoked_at: revokedAtMs === null ? null : isoTime(revokedAtMs),
  last_used_at: lastUsedAtMs === null ? null : isoTime(lastUsedAtMs),
});

const EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a62",
  note: "the board",
  created_at: "2026-01-02T10:00:00.000Z",
  expires_at: "2026-02-01T10:00:00.000Z",
  revoked_at: null,
  last_used_at: null,
};

const LIST_LINKS = declareRoute({
  ...DOMAIN_REPORTS,
  path: PATH,
  operationId: "listDmarcReportLinks",
  summary: "List the read-only links to a domain's report",
  description: "Newest first, the last 50, ended ones included. The links themselves are not returned.",
  responses: {
    200: okResponse(
      "The links.",
      namedResponse("DmarcReportLinkList", { report_links: listField(linkSchema, "The links.") }),
      { report_links: [EXAMPLE] },
    ),
  },
});

const CREATE_LINK = declareRoute({
  method: "POST",
  path: PATH,
  operationId: "createDmarcReportLink",
  tag: DOMAIN_REPORTS.tag,
  summary: "Create a read-only link to a domain's report",
  description: `Anybody who has the link can read the monthly reports of this domain, and nothing else, until it ends. A domain has at most ${OPEN_SHARES_MAX} links that have not ended.`,
  scope: "dmarc:write",
  params: domainParams,
  body: {
    schema: namedBody("DmarcReportLinkOrder", {
      expires_at: z.iso
        .datetime({ offset: true, error: "Must be a time such as 2026-02-01T00:00:00Z" })
        .describe(`When the link ends: in the future, at most ${SHARE_DAYS_MAX} days from now.`),
      note: labelSchema("the board", "For whom the link is.").nullable().optional(),
    }),
    example: { expires_at: "2026-02-01T10:00:00Z", note: "the board" },
  },
  responses: {
    201: okResponse("The link, with its URL.", newLinkSchema, {
      ...EXAMPLE,
      url: "https://postwarden.example.net/r/0nBqv5m8cVtYwQ2kLr7uJd3sXa9eHf1g",
    }),
  },
});

const REVOKE_LINK = declareRoute({
  method: "DELETE",
  path: `${PATH}/:linkId`,
  operationId: "revokeDmarcReportLink",
  tag: DOMAIN_REPORTS.tag,
  summary: "Revoke a read-only link",
  description: "It shows nothing from now on. A link that has ended stays as it is.",
  scope: "dmarc:write",
  params: domainParams.extend({ linkId: idParameter("link") }),
  responses: { 204: { description: "The link is revoked." } },
});

/** The routes of read-only links, as they are declared. */
export const SHARE_ROUTES = [LIST_LINKS, CREATE_LINK, REVOKE_LINK] as const;

/** The same routes with their handlers. */
export const createShareRoutes = ({
  shares,
  findDomain,
}: {
  readonly shares: ReportShares;
  readonly findDomain: QueryContext["findDomain"];
}) => [
  handle(LIST_LINKS, ({ caller, params }) => ({
    report_links: shares.list(findDomain(caller, params.id)).map(shareView),
  })),

  handle(CREATE_LINK, async ({ caller, params, body, set }) => {
    const wanted = { expiresAtMs: Date.parse(body.expires_at), note: body.note ?? null };
    const created = await shares.create(() => findDomain(caller, params.id), wanted);
    set.status = 201;
    return { ...shareView(created), url: created.url };
  }),

  handle(REVOKE_LINK, async ({ caller, params, set }) => {
    await shares.revoke(() => findDomain(caller, params.id), params.linkId);
    set.status = 204;
  }),
];
