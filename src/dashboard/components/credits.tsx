import { usePage } from "../visit.ts";
import { Button, Field, PostForm } from "./form.tsx";

/** Where an operator grants credits; `back` in its form is the page that it returns to. */
export const CREDITS_PATH = "/settings/account/credits";

/** What credits are, wherever a page explains it. */
export const CREDITS_TEXT =
  "One credit pays for one address; where its mail server does not respond, none is charged. Credits are a budget, so that a mistake cannot query a million mailboxes.";

/** Grants credits to the account of the page, for operators; nothing for others. */
export const GrantCredits = ({ credits, back }: { readonly credits: number; readonly back?: string }) =>
  usePage().may(CREDITS_PATH) ? (
    <PostForm action={CREDITS_PATH} class="inline-form">
      {back !== undefined && <input type="hidden" name="back" value={back} />}
      <Field name="credits" label="Credits" type="number" min={1} value={credits} isRequired />
      <Button>Grant credits</Button>
    </PostForm>
  ) : null;
