// Creates the first administrator while no users exist.
import { Alert, Anchor, Button, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { isEmail, useForm } from "@mantine/form";
import { useState } from "react";
import { useConnection } from "../../api/connection-context.ts";
import { ApiError, toMessage } from "../../api/error.ts";
import { EntranceLayout } from "./entrance-layout.tsx";

interface Props {
  readonly onDone: () => void;
  readonly onSkip: () => void;
}

export default function FirstRunPage({ onDone, onSkip }: Props) {
  const connection = useConnection();
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const form = useForm({
    initialValues: { name: "", email: "", password: "" },
    validateInputOnBlur: true,
    validate: {
      name: (value) => (value.trim() === "" ? "Name is required" : null),
      email: isEmail("Must be an e-mail address"),
      password: (value) => (value.length < 10 ? "At least 10 characters" : null),
    },
  });

  const create = form.onSubmit(async (values) => {
    setBusy(true);
    setFailure(null);
    try {
      const { email, password } = values;
      await connection.send("/users", { method: "POST", body: { ...values, role: "admin" } });
      const body = { email, password };
      const login = { method: "POST", body, waitsForSignIn: false } as const;
      // If that fails, the sign-in page comes next.
      await connection.send("/auth/login", login).catch(() => null);
      onDone();
    } catch (error) {
      if (error instanceof ApiError && error.field !== null && error.field in values)
        form.setFieldError(error.field, error.detail);
      else setFailure(toMessage(error));
    } finally {
      setBusy(false);
    }
  });

  return (
    <EntranceLayout
      title="Create the first administrator"
      text={
        <Alert color="yellow" title="This gateway has no administrator yet">
          Until an administrator exists, anyone who can reach this address can change everything and
          create that administrator.
        </Alert>
      }
    >
      <form onSubmit={create} aria-label="First administrator">
        <Stack>
          {failure !== null && (
            <Alert color="red" role="alert">
              {failure}
            </Alert>
          )}
          <TextInput label="Name" autoComplete="name" required {...form.getInputProps("name")} />
          <TextInput
            label="E-mail address"
            type="email"
            autoComplete="username"
            required
            {...form.getInputProps("email")}
          />
          <PasswordInput
            label="Password"
            description="At least 10 characters; not your name, your address or a common password"
            autoComplete="new-password"
            required
            {...form.getInputProps("password")}
          />
          <Button type="submit" loading={isBusy}>
            Create administrator
          </Button>
          <Text size="sm" ta="center">
            <Anchor component="button" type="button" onClick={onSkip}>
              Continue without users
            </Anchor>
          </Text>
        </Stack>
      </form>
    </EntranceLayout>
  );
}
