// Asks for the password before an action that a stolen session must not perform; knows no such action.
import { Button, Group, PasswordInput, Stack, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { fieldErrorOf } from "./field-error.ts";

interface Props<T> {
  /** Of the button. */
  readonly label: string;
  readonly color?: string;
  readonly text: string;
  readonly hasPassword: boolean;
  readonly path: string;
  readonly method: "POST" | "DELETE";
  readonly touches: readonly string[];
  /** Null: no notification. */
  readonly doneMessage: string | null;
  readonly onCancel: () => void;
  readonly onDone: (value: T) => void;
}

export function ProofForm<T>(props: Props<T>) {
  const { label, color, text, hasPassword, path, method, touches, doneMessage } = props;
  const connection = useConnection();
  const [failure, setFailure] = useState<unknown>(null);
  const form = useForm({
    initialValues: { current_password: "" },
    validate: {
      current_password: (value) => (hasPassword && value === "" ? "Password is required" : null),
    },
  });
  const change = useChange<T, object>({
    send: (body) => connection.send<T>(path, { method, body }),
    touches,
    done: () => doneMessage,
    showsErrors: true,
  });
  const submit = form.onSubmit(async (values) => {
    setFailure(null);
    try {
      props.onDone((await change.mutateAsync(hasPassword ? values : {})).value);
    } catch (error) {
      const errors = fieldErrorOf(error, values);
      if (errors === null) setFailure(error);
      else form.setErrors(errors);
    }
  });
  return (
    <form onSubmit={submit} noValidate aria-label={label}>
      <Stack maw={420}>
        <Text size="sm">{text}</Text>
        {hasPassword && (
          <PasswordInput
            label="Your password"
            autoComplete="current-password"
            required
            autoFocus
            {...form.getInputProps("current_password")}
          />
        )}
        {failure !== null && <ErrorPanel error={failure} />}
        <Group>
          <Button type="submit" loading={change.isPending} {...(color ? { color } : {})}>
            {label}
          </Button>
          <Button variant="default" onClick={props.onCancel}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
