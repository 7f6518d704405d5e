import { z } from "zod";
import { DIGESTS } from "../../dmarc/records/domains/domain-store.ts";
import { tagSchema } from "../../dmarc/records/domains/enrolments.ts";
import type { ShownTag } from "../../dmarc/tag-routes.ts";
import { NO_MAIL_PROBLEM } from "../../foundation/mail/recipients.ts";
import { numberText, Percent } from "../components/figures.tsx";
import { Button, PostForm, SelectField, TextAreaField } from "../components/form.tsx";
import { ButtonLink } from "../components/inline.tsx";
import { PageHead, Panel, Stat, Stats } from "../components/panel.tsx";
import { formAction, page, type PageRoute } from "../page.ts";
import { redirectTo, type View, type Viewer } from "../visit.ts";
import type { DmarcPageUseCases } from "./use-cases.ts";

const PATH = "/dmarc/tags/:tag";
const RECIPIENTS_CHARACTERS_MAX = 7_000;
const params = z.object({ tag: tagSchema });
const form = z.object({
  digest: z.enum(DIGESTS),
  recipients: z
    .string()
    .max(RECIPIENTS_CHARACTERS_MAX)
    .default("")
    .transform((text) => text.split(/[\s,;]+/).filter((address) => address !== "")),
});

/** Where the page of a tag is. */
export const tagPath = (tag: string): string => `/dmarc/tags/${encodeURIComponent(tag)}`;

/** A tag: the figures of its domains, and their digest. */
export const tagPages = ({ tags, hasMail }: Pick<DmarcPageUseCases, "tags" | "hasMail">): readonly PageRoute[] => {
  const view = ({ caller }: Viewer, tag: string): View => {
    const shown = tags.find(caller, tag);
    return {
      title: `Tag ${tag}`,
      section: "dmarc",
      body: (
        <>
          <PageHead
            title={`Domains with the tag ${tag}`}
            crumbs={[["DMARC", "/dmarc"]]}
            actions={<ButtonLink href={`/dmarc?tag=${encodeURIComponent(tag)}`}>Show the domains</ButtonLink>}
          />
          <Figures {...shown} />
          <Digest shown={shown} hasMail={hasMail} />
        </>
      ),
    };
  };
  return [
    page({ path: PATH, params }, ({ viewer, params: { tag } }) => view(viewer, tag)),
    formAction(
      { path: PATH, params, form },
      async ({ viewer, params: { tag }, form: change }) => {
        await tags.change(viewer.caller, tag, change);
        return redirectTo(viewer, tagPath(tag), { ok: "The digest is saved." });
      },
      { rerender: ({ viewer, params: { tag } }) => view(viewer, tag) },
    ),
  ];
};

const Figures = ({ domains, messages, aligned, actionable, open_alerts: alerts }: ShownTag) => (
  <Stats>
    <Stat label="Domains" value={numberText(domains)} />
    <Stat label="Messages in 30 days" value={numberText(messages)} />
    <Stat label="Aligned" value={messages === 0 ? "–" : <Percent part={aligned} whole={messages} />} />
    <Stat label="Failing, to act on" value={numberText(actionable)} />
    <Stat label="Open alerts" value={numberText(alerts)} />
  </Stats>
);

const Digest = ({ shown, hasMail }: { readonly shown: ShownTag; readonly hasMail: boolean }) => (
  <Panel title="Digest">
    <p class="soft">One mail about all domains with this tag, beside the digests of the domains.</p>
    <PostForm action={tagPath(shown.tag)} class="form">
      <SelectField
        name="digest"
        label="Digest"
        value={shown.digest}
        options={[
          ["off", "Off"],
          ["daily", "Daily"],
          ["weekly", "Weekly"],
          ["monthly", "Monthly"],
        ]}
      />
      <TextAreaField
        name="recipients"
        label="Recipients"
        value={shown.recipients.join("\n")}
        rows={3}
        hint={hasMail ? "One address a line." : NO_MAIL_PROBLEM}
      />
      <div class="actions">
        <Button kind="main">Save the digest</Button>
      </div>
    </PostForm>
  </Panel>
);
