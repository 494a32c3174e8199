// The sign-in form with password and optional code; the caller handles the result.
import { Alert, Anchor, Box, Button, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";
import { useConnection } from "../api/connection-context.ts";
import { ApiError, toMessage } from "../api/error.ts";
import type { Schemas } from "../api/resources.ts";
import { inWords, useSecondsUntil } from "./countdown.ts";

interface SignInFormProps {
  readonly onSignedIn: (me: Schemas["Me"]) => void;
  /** Prefilled address, as after the end of a session. */
  readonly email?: string;
}

/** Shows the code input only if the gateway requires it. */
export function SignInForm({ onSignedIn, email = "" }: SignInFormProps) {
  const { form, signIn, failure, needsCode, isBusy, waitSeconds, startOver } = useSignIn({
    onSignedIn,
    email,
  });
  return (
    <form onSubmit={signIn} aria-label="Sign in">
      <Stack>
        <Failure text={failure} waitSeconds={waitSeconds} />
        {/* Kept while the code is asked for, so that the same is sent again. */}
        <Box display={needsCode ? "none" : undefined}>
          <Stack>
            <TextInput
              label="E-mail address"
              type="email"
              autoComplete="username"
              required
              autoFocus={email === ""}
              {...form.getInputProps("email")}
            />
            <PasswordInput
              label="Password"
              autoComplete="current-password"
              required
              {...(email === "" ? {} : { "data-autofocus": true })}
              {...form.getInputProps("password")}
            />
          </Stack>
        </Box>
        {needsCode && (
          <>
            <Text size="sm" style={{ overflowWrap: "anywhere" }}>
              Signing in as {form.values.email}.{" "}
              <Anchor component="button" type="button" size="sm" onClick={startOver}>
                Not you?
              </Anchor>
            </Text>
            <TextInput
              label="Code"
              description="Six digits from your authenticator app, or one of your recovery codes"
              autoComplete="one-time-code"
              required
              autoFocus
              {...form.getInputProps("totp")}
            />
          </>
        )}
        <Button type="submit" loading={isBusy} disabled={waitSeconds > 0}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}

function useSignIn({ onSignedIn, email = "" }: SignInFormProps) {
  const connection = useConnection();
  const [failure, setFailure] = useState<string | null>(null);
  const [waitUntil, setWaitUntil] = useState(0);
  const [needsCode, setNeedsCode] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const form = useForm({ initialValues: { email, password: "", totp: "" } });

  const refuse = (error: unknown, totp: string) => {
    if (!(error instanceof ApiError)) return setFailure(toMessage(error));
    if (error.headers.get("x-totp-required") === "true" && totp === "") return setNeedsCode(true);
    if (error.status === 429) {
      setWaitUntil(Date.now() + 1000 * Number(error.headers.get("retry-after") ?? 0));
      return setFailure("Too many attempts.");
    }
    if (error.status === 401 && error.message.startsWith("totp:"))
      return form.setFieldError("totp", "Wrong or already used code");
    setFailure(error.status === 401 ? "Wrong e-mail address or password." : error.message);
  };
  const signIn = form.onSubmit(async ({ totp, ...values }) => {
    setBusy(true);
    setFailure(null);
    try {
      const code = totp.replaceAll(/\s/g, "");
      const body = code === "" ? values : { ...values, totp: code };
      const { value } = await connection.send<Schemas["Me"]>("/auth/login", {
        method: "POST",
        body,
        waitsForSignIn: false,
      });
      onSignedIn(value);
    } catch (error) {
      refuse(error, totp);
    } finally {
      setBusy(false);
    }
  });
  const startOver = () => {
    setNeedsCode(false);
    setFailure(null);
    form.setValues({ email: "", password: "", totp: "" });
  };
  const waitSeconds = useSecondsUntil(waitUntil);
  return { form, signIn, failure, needsCode, isBusy, waitSeconds, startOver };
}

interface FailureProps {
  readonly text: string | null;
  readonly waitSeconds: number;
}

function Failure({ text, waitSeconds }: FailureProps) {
  if (text === null) return null;
  return (
    <Alert color="red" role="alert">
      {text}
      {waitSeconds > 0 && (
        // Announced once by screen readers, not every second.
        <span aria-live="off"> Try again in {inWords(waitSeconds)}.</span>
      )}
    </Alert>
  );
}
