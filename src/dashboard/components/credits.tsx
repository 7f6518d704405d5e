import { usePage } from "../visit.ts";
import { Button, Field, PostForm } from "./form.tsx";

/** Where an operator grants credits; `back` in its form is the page that it returns to. */
export const CREDITS_PATH = "/settings/account/credits";

/** Grants credits to the account of the page, for operators; nothing for others. */
export const GrantCredits = ({ credits, back }: { readonly credits: number; readonly back?: string }) =>
  usePage().may(CREDITS_PATH) ? (
    <PostForm action={CREDITS_PATH} class="inline-form">
      {back !== undefined && <input type="hidden" name="back" value={back} />}
      <Field name="credits" label="Credits" type="number" min={1} value={credits} isRequired />
      <Button>Grant credits</Button>
    </PostForm>
  ) : null;
