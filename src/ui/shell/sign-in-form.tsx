// The form of signing in with a password and, when asked for, a code; decides nothing about what comes after.
import { Alert, Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";
import { useConnection } from "../api/connection-context.ts";
import { ApiError, toMessage } from "../api/error.ts";
import type { Schemas } from "../api/resources.ts";

interface SignInFormProps {
  readonly onSignedIn: (me: Schemas["Me"]) => void;
  /** Filled in, as when a session ended. */
  readonly email?: string;
}

/** Asks for a code only when the gateway says that one is needed. */
export function SignInForm({ onSignedIn, email = "" }: SignInFormProps) {
  const connection = useConnection();
  const [failure, setFailure] = useState<string | null>(null);
  const [needsCode, setNeedsCode] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const form = useForm({ mode: "uncontrolled", initialValues: { email, password: "", totp: "" } });

  const signIn = form.onSubmit(async ({ totp, ...values }) => {
    setBusy(true);
    setFailure(null);
    try {
      const body = totp === "" ? values : { ...values, totp: totp.replaceAll(/\s/g, "") };
      const { value } = await connection.send<Schemas["Me"]>("/auth/login", {
        ...{ method: "POST", body, waitsForSignIn: false },
      });
      onSignedIn(value);
    } catch (error) {
      const isQuestion =
        error instanceof ApiError && error.headers.get("x-totp-required") === "true";
      if (isQuestion && totp === "") setNeedsCode(true);
      else setFailure(failureOf(error));
    } finally {
      setBusy(false);
    }
  });

  return (
    <form onSubmit={signIn} aria-label="Sign in">
      <Stack>
        {failure !== null && (
          <Alert color="red" role="alert">
            {failure}
          </Alert>
        )}
        <TextInput
          label="E-mail address"
          type="email"
          autoComplete="username"
          required
          autoFocus={email === ""}
          key={form.key("email")}
          {...form.getInputProps("email")}
        />
        <PasswordInput
          label="Password"
          autoComplete="current-password"
          required
          autoFocus={email !== ""}
          key={form.key("password")}
          {...form.getInputProps("password")}
        />
        {needsCode && (
          <TextInput
            label="Code"
            description="From your authenticator app, or one of your recovery codes"
            autoComplete="one-time-code"
            required
            autoFocus
            key={form.key("totp")}
            {...form.getInputProps("totp")}
          />
        )}
        <Button type="submit" loading={isBusy}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}

function failureOf(error: unknown): string {
  if (!(error instanceof ApiError) || error.status !== 429) return toMessage(error);
  const seconds = Number(error.headers.get("retry-after") ?? 0);
  const minutes = Math.ceil(seconds / 60);
  return seconds === 0
    ? error.message
    : `Too many attempts. Try again in ${minutes === 1 ? "a minute" : `${minutes} minutes`}.`;
}
