import type { ComponentChildren } from "preact";
import { PostForm } from "../components/form.tsx";
import { usePage } from "../context.ts";

/** A form behind a button, which is open when it is shown again with what is wrong with it. */
export const MoreForm = ({
  label,
  action,
  children,
}: {
  readonly label: string;
  readonly action: string;
  readonly children: ComponentChildren;
}) => (
  <details class="more" open={usePage().form?.action === action}>
    <summary class="button">{label}</summary>
    <PostForm action={action} class="form">
      {children}
    </PostForm>
  </details>
);
