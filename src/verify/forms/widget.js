// Checks the email addresses of forms with the attribute data-postwarden. It never holds a form back, and never changes an address by itself.
"use strict";

(() => {
  const script = document.currentScript ?? document.querySelector("script[data-key][src*='/widget.js']");
  if (!script?.dataset.key) return;
  const url = new URL("v1/email-verifications?timeout=5", script.src);
  const WAIT_MS = 8_000;
  const TEXTS = {
    suggestion: "Did you mean {address}?",
    undeliverable: "This address cannot receive mail. Please check it.",
    disposable: "This is a disposable address. Please use one that you keep.",
  };
  const states = new WeakMap();

  /** What has the attribute: the field itself or its form. */
  const holderOf = (input) => [input, input.form].find((one) => one?.hasAttribute("data-postwarden"));

  /** Whether a field is to be checked: that of type email, or the one that the attribute of the form names. */
  const isChecked = (input) => {
    if (!(input instanceof HTMLInputElement)) return false;
    const holder = holderOf(input);
    if (holder === undefined || holder === input) return holder === input;
    // "true" is what frameworks make of an attribute without a value.
    const name = holder.dataset.postwarden.replace(/^true$/, "");
    return name ? input.name === name : input.type === "email";
  };

  /** The state of a field. Its message stands on the page before it says anything: only then is it read out. */
  const stateOf = (input) => {
    const known = states.get(input);
    if (known?.box.isConnected) return known;
    const box = document.createElement("div");
    box.id = `postwarden-${Math.random().toString(36).slice(2)}`;
    box.className = "postwarden";
    box.setAttribute("role", "status");
    box.setAttribute("aria-live", "polite");
    (input.closest("label") ?? input).after(box);
    const described = (input.getAttribute("aria-describedby") ?? "").split(/\s+/).filter((id) => id !== known?.box.id);
    input.setAttribute("aria-describedby", [...described, box.id].join(" ").trim());
    const state = { box, email: "", abort: null };
    states.set(input, state);
    return state;
  };

  const textOf = (input, name) => holderOf(input)?.dataset[name] ?? script.dataset[name] ?? TEXTS[name];

  const take = (input, email) => {
    input.focus();
    // Frameworks that replace the property of a field do not hear of its own.
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, email);
    for (const type of ["input", "change"]) input.dispatchEvent(new Event(type, { bubbles: true }));
  };

  const suggest = (input, box, email) => {
    const [before, after = ""] = textOf(input, "suggestion").split("{address}");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "postwarden-suggestion";
    button.textContent = email;
    button.addEventListener("click", () => take(input, email));
    box.append(before, button, after);
  };

  const show = (input, box, detail) => {
    const event = new CustomEvent("postwarden", { bubbles: true, cancelable: true, detail });
    if (!input.dispatchEvent(event)) return;
    const { verdict, sub_status: reason, did_you_mean: meant } = detail;
    box.dataset.verdict = verdict ?? "";
    if (meant) suggest(input, box, meant);
    else if (verdict === "undeliverable") box.textContent = textOf(input, "undeliverable");
    else if (reason === "disposable") box.textContent = textOf(input, "disposable");
  };

  /** What the service says; null when it is away, slow, or refuses. */
  const ask = async (email, signal) => {
    try {
      const response = await fetch(url, {
        method: "POST",
        credentials: "omit",
        headers: { authorization: `Bearer ${script.dataset.key}`, "content-type": "application/json" },
        body: JSON.stringify({ email }),
        signal,
      });
      return response.ok ? await response.json() : null;
    } catch {
      return null;
    }
  };

  const check = async (input) => {
    const state = stateOf(input);
    const email = input.value.trim();
    if (email === state.email) return;
    state.abort?.abort();
    state.email = email;
    state.box.replaceChildren();
    // The browser itself says what is wrong with such a text.
    if (email === "" || input.validity.typeMismatch) return;
    const abort = new AbortController();
    state.abort = abort;
    const timer = setTimeout(() => abort.abort(), WAIT_MS);
    const answer = await ask(email, abort.signal);
    clearTimeout(timer);
    if (state.abort !== abort) return;
    if (answer === null) state.email = "";
    else if (input.value.trim() === email) {
      const { verdict = null, sub_status = null, did_you_mean = null } = answer.result ?? answer;
      show(input, state.box, { email, verdict, sub_status, did_you_mean });
    }
  };

  const prepare = (input) => isChecked(input) && stateOf(input);
  document.addEventListener("focusin", ({ target }) => prepare(target));
  document.addEventListener("change", ({ target }) => isChecked(target) && check(target));
  prepare(document.activeElement);
  // What was typed or filled in before the script was there.
  for (const input of document.querySelectorAll("input"))
    if (input !== document.activeElement && isChecked(input) && input.value !== input.defaultValue) check(input);
})();
