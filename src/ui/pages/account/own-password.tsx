// The form that changes the user's own password; knows no other user.
import { Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useContext, useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ReadOnlyContext, useRole } from "../../api/queries.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Section } from "../../parts/page-layout.tsx";
import { fieldErrorOf } from "./field-error.ts";
import { type MeansProps, meansPath } from "./means.ts";

const MIN_PASSWORD = 10;

export const passwordRule = (value: string): string | null =>
  value.length < MIN_PASSWORD ? `At least ${MIN_PASSWORD} characters` : null;

export function OwnPassword({ userId, means }: MeansProps) {
  const role = useRole();
  const isReadOnly = useContext(ReadOnlyContext);
  const text = means.has_password
    ? "A new password ends all your other sessions."
    : "You have no password: you use single sign-on.";
  if (isReadOnly)
    return (
      <Section title="Password">
        <Text size="sm">
          Users are defined in the configuration file. Change the password there.
        </Text>
      </Section>
    );
  if (!means.has_password && role !== "admin")
    return (
      <Section title="Password" text={text}>
        <Text size="sm">An admin can set one.</Text>
      </Section>
    );
  return (
    <Section title="Password" text={text}>
      <PasswordForm userId={userId} means={means} />
    </Section>
  );
}

function PasswordForm({ userId, means }: MeansProps) {
  const connection = useConnection();
  const [failure, setFailure] = useState<unknown>(null);
  const form = useForm({
    initialValues: { current_password: "", password: "" },
    validateInputOnBlur: true,
    validate: {
      current_password: (value) =>
        means.has_password && value === "" ? "Current password is required" : null,
      password: passwordRule,
    },
  });
  const change = useChange<unknown, typeof form.values>({
    send: ({ current_password, password }) => {
      const body = means.has_password ? { current_password, password } : { password };
      return connection.send(`/users/${userId}/password`, { method: "PUT", body });
    },
    touches: [meansPath(userId), "auth/sessions"],
    done: () => "Password changed",
    showsErrors: true,
  });
  const submit = form.onSubmit(async (values) => {
    setFailure(null);
    try {
      await change.mutateAsync(values);
      form.reset();
    } catch (error) {
      const errors = fieldErrorOf(error, values);
      if (errors === null) setFailure(error);
      else form.setErrors(errors);
    }
  });
  return (
    <form onSubmit={submit} noValidate aria-label="Change the password">
      <Stack maw={420}>
        {means.has_password && (
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            required
            {...form.getInputProps("current_password")}
          />
        )}
        <PasswordInput
          label="New password"
          description={`At least ${MIN_PASSWORD} characters, not your name or a common password`}
          autoComplete="new-password"
          required
          {...form.getInputProps("password")}
        />
        {failure !== null && <ErrorPanel error={failure} title="Not changed" />}
        <Group>
          <Button type="submit" loading={change.isPending}>
            Change the password
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
