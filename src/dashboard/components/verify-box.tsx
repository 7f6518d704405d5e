import { Button, Field, PostForm } from "./form.tsx";

/** The box to verify one address. */
export const VerifyBox = () => (
  <PostForm action="/verify" class="inline-form">
    <Field
      name="email"
      label="Email address"
      type="text"
      isLabelHidden
      placeholder="someone@example.com"
      autocomplete="off"
      isMono
      isRequired
    />
    <Button kind="main">Verify</Button>
  </PostForm>
);
