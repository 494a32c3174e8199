// The setup of the second factor: password, QR code, first code; knows no session.
import { Button, Group, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useForm } from "@mantine/form";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Schemas } from "../../api/resources.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { HelpText } from "../../parts/page-layout.tsx";
import { CopyableValue } from "../../parts/secret-once.tsx";
import { fieldErrorOf } from "./field-error.ts";
import { ProofForm } from "./proof-form.tsx";
import { QrCode } from "../../parts/qr-code.tsx";
import { type MeansProps, meansPath } from "./means.ts";

interface Props extends MeansProps {
  readonly onCancel: () => void;
  /** Given the recovery codes. */
  readonly onDone: (codes: readonly string[]) => void;
}

export function TotpSetup(props: Props) {
  const { userId, means, onCancel } = props;
  const [setup, setSetup] = useState<Schemas["TotpSetup"] | null>(null);
  if (setup !== null) return <Confirm {...props} setup={setup} />;
  return (
    <ProofForm<Schemas["TotpSetup"]>
      label="Next"
      text="You need an authenticator app, such as Aegis, 2FAS or your password manager."
      hasPassword={means.has_password}
      path={`/users/${userId}/totp`}
      method="POST"
      touches={[]}
      doneMessage={null}
      onCancel={onCancel}
      onDone={setSetup}
    />
  );
}

function Confirm({ userId, setup, onCancel, onDone }: Props & { setup: Schemas["TotpSetup"] }) {
  const { form, submit, failure, isBusy } = useConfirmation(userId, onDone);
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="lg">
      <Stack gap="xs">
        <Text size="sm" fw={600}>
          1. Scan this with your app
        </Text>
        <QrCode text={setup.uri} label="QR code for your authenticator app" />
        <HelpText>Or enter the key:</HelpText>
        <CopyableValue value={setup.secret.match(/.{1,4}/g)?.join(" ") ?? ""} label="the key" />
      </Stack>
      <form onSubmit={submit} noValidate aria-label="Confirm the second factor">
        <Stack gap="sm">
          <Text size="sm" fw={600}>
            2. Enter the code from the app
          </Text>
          <TextInput
            label="Code"
            description="Six digits, a new one every 30 seconds"
            inputMode="numeric"
            autoComplete="one-time-code"
            required
            autoFocus
            {...form.getInputProps("code")}
          />
          {failure !== null && <ErrorPanel error={failure} />}
          <Group>
            <Button type="submit" loading={isBusy}>
              Turn on
            </Button>
            <Button variant="default" onClick={onCancel}>
              Cancel
            </Button>
          </Group>
          <HelpText>Nothing changes until you confirm a code.</HelpText>
        </Stack>
      </form>
    </SimpleGrid>
  );
}

function useConfirmation(userId: string, onDone: Props["onDone"]) {
  const connection = useConnection();
  const [failure, setFailure] = useState<unknown>(null);
  const form = useForm({
    initialValues: { code: "" },
    validate: {
      code: (value) => (/^\d{6}$/.test(value.replaceAll(/\s/g, "")) ? null : "Six digits"),
    },
  });
  const confirm = useChange<Schemas["RecoveryCodes"], string>({
    send: (code) =>
      connection.send(`/users/${userId}/totp/confirm`, { method: "POST", body: { code } }),
    touches: [meansPath(userId), "users"],
    done: () => "Second factor turned on",
    showsErrors: true,
  });
  const submit = form.onSubmit(async ({ code }) => {
    setFailure(null);
    try {
      const { value } = await confirm.mutateAsync(code.replaceAll(/\s/g, ""));
      onDone(value.recovery_codes);
    } catch (error) {
      const errors = fieldErrorOf(error, { code });
      if (errors === null) setFailure(error);
      else form.setErrors(errors);
    }
  });
  return { form, submit, failure, isBusy: confirm.isPending };
}
