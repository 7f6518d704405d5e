import { z } from "zod";
import { AppError } from "../../foundation/base/errors.ts";
import { MAIL_KIND_NAMES, type MailSubscriptions, offPath } from "../../notifications/mail/mail-subscriptions.ts";
import type { MailSubscription } from "../../notifications/mail/subscription-store.ts";
import { Button, PostForm } from "../components/form.tsx";
import { type PageRoute, publicAction, publicPage } from "../page.ts";
import type { View } from "../visit.ts";

export interface MailOffUseCases {
  readonly subscriptions: Pick<MailSubscriptions, "findByToken">;
  /** Stops or resumes the mail of a link, with an entry in the audit log. Undefined for a link that no mail had. */
  readonly setByLink: (token: string, isOn: boolean) => Promise<MailSubscription | undefined>;
  /** The name of an account; empty when it was deleted. */
  readonly accountName: (id: string) => string;
}

const OFF = "/notifications/off/:token";
const ON = "/notifications/on/:token";
const linkPath = z.object({ token: z.string().max(100) });

/** The pages behind the link in every mail: without a session, for one kind of mail to one recipient. */
export const createMailOffPages = ({
  subscriptions,
  setByLink,
  accountName,
}: MailOffUseCases): readonly PageRoute[] => {
  const viewOf = (subscription: MailSubscription | undefined): View => {
    if (subscription === undefined) throw unknownLink();
    const { stoppedAtMs, kind } = subscription;
    const title = stoppedAtMs === null ? `Stop ${MAIL_KIND_NAMES[kind]}` : "Stopped";
    return {
      title,
      section: null,
      body: <MailOffPage {...subscription} account={accountName(subscription.accountId)} />,
    };
  };
  return [
    // Programs that scan mail follow its links: this changes nothing.
    publicPage({ path: OFF, params: linkPath }, ({ params }) => viewOf(subscriptions.findByToken(params.token))),
    oneClickRoute(setByLink, viewOf),
    publicAction({ path: ON, params: linkPath }, async ({ params }) => viewOf(await setByLink(params.token, true))),
  ];
};

const unknownLink = (): AppError =>
  new AppError("not_found", { message: "This link is not known here. Use the link of a newer mail." });

/**
 * Stops the mail. Mail programs send this without a session and without a token against forgery (RFC 8058 §3.2); the link
 * cannot be guessed, and this is all that it does. The body is not read.
 */
const oneClickRoute = (
  setByLink: MailOffUseCases["setByLink"],
  viewOf: (subscription: MailSubscription | undefined) => View,
): PageRoute => ({
  ...{ method: "POST", path: OFF, access: "anyone" },
  async serve({ params }) {
    const read = linkPath.safeParse(params);
    return { view: viewOf(read.success ? await setByLink(read.data.token, false) : undefined) };
  },
});

const MailOffPage = ({ token, recipient, kind, stoppedAtMs, account }: MailSubscription & { account: string }) => {
  const what = MAIL_KIND_NAMES[kind];
  const of = account === "" ? "" : ` of the account “${account}”`;
  if (stoppedAtMs !== null)
    return (
      <>
        <h1>Stopped</h1>
        <p>
          <b class="mono">{recipient}</b> receives no more {what}
          {of}, whoever adds the address as a recipient. It can be resumed here, or in the dashboard under Settings ›
          Notifications.
        </p>
        <PostForm action={`/notifications/on/${token}`}>
          <Button icon="bell">Undo: send them again</Button>
        </PostForm>
      </>
    );
  return (
    <>
      <h1>Stop {what}?</h1>
      <p>
        <b class="mono">{recipient}</b> will receive no more {what}
        {of}. Other mail, and other recipients, are not affected.
      </p>
      <PostForm action={offPath(token)}>
        <Button kind="main" icon="bell-off">
          Stop {what}
        </Button>
      </PostForm>
    </>
  );
};
