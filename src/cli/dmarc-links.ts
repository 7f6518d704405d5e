import { shareView } from "../dmarc/share-routes.ts";
import { argument, command, group, option, required, time } from "./command.ts";
import { findDomain, onDomain } from "./dmarc-domains.ts";
import { readLabel } from "./service.ts";
import { tableTime } from "./terminal-text.ts";

/** `dmarc links`: read-only links to the report of a domain. */
export const REPORT_LINKS = group(
  {
    description: "Create, list and revoke read-only links to the monthly reports of a domain.",
    example: "dmarc links create example.com --until 2026-12-31T00:00:00Z",
  },
  {
    list: command({
      description: "List the links to the report of a domain, newest first.",
      ...onDomain,
      example: "dmarc links list example.com",
      run(context, { text }) {
        const links = context.service.dmarc.shares.list(findDomain(context, text)).map(shareView);
        context.print({ report_links: links }, () =>
          context.table(
            ["ID", "CREATED", "ENDS", "LAST USED", "FOR"],
            links.map(({ id, created_at, expires_at, revoked_at, last_used_at, note }) => [
              id,
              tableTime(created_at, ""),
              revoked_at === null ? tableTime(expires_at, "") : "revoked",
              tableTime(last_used_at, "never"),
              note ?? "",
            ]),
          ),
        );
      },
    }),
    create: command({
      description: "Create a link, which is printed once. Anybody who has it can read the report until it ends.",
      ...onDomain,
      example: "dmarc links create example.com --until 2026-12-31T00:00:00Z --note board",
      options: {
        until: required(time("when the link ends, at most 366 days from now", "2026-12-31T00:00:00Z")),
        note: option("<text>", "for whom the link is"),
      },
      async run(context, { text, until: expiresAtMs, note = null }) {
        const { service, caller, perform, print } = context;
        const { domains, shares } = service.dmarc;
        const { id, domain } = findDomain(context, text);
        const created = await perform({ action: "dmarc.shares.add", subject: domain }, () =>
          shares.create(() => domains.find(caller, id), {
            expiresAtMs,
            note: note === null ? null : readLabel(note, "--note"),
          }),
        );
        print({ ...shareView(created), url: created.url }, () => created.url);
      },
    }),
    revoke: command({
      description: "Revoke a link: it shows nothing any more.",
      on: onDomain.on,
      example: "dmarc links revoke example.com 019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a62",
      args: { ...onDomain.args, link: argument("<id>", "id of the link, as `dmarc links list` shows it") },
      async run(context, { text, link }) {
        const { service, caller, perform, print } = context;
        const { domains, shares } = service.dmarc;
        const { id, domain } = findDomain(context, text);
        await perform({ action: "dmarc.shares.revoke", subject: domain }, () =>
          shares.revoke(() => domains.find(caller, id), link),
        );
        print({ id: link }, () => `${link}: revoked.`);
      },
    }),
  },
);
