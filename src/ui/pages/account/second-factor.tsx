// The user's own second factor: set up step by step, or turned off; draws the QR code locally.
import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { HelpText, Section } from "../../parts/page-layout.tsx";
import { ProofForm } from "./proof-form.tsx";
import { RecoveryCodes } from "./recovery-codes.tsx";
import { type MeansProps, meansPath } from "./means.ts";
import { TotpSetup } from "./totp-setup.tsx";

const TEXT = "A code from an authenticator app, required in addition to the password.";

export function SecondFactor({ userId, means }: MeansProps) {
  const [isOpen, setOpen] = useState(false);
  const [codes, setCodes] = useState<readonly string[] | null>(null);
  const close = () => setOpen(false);
  const toggle = (
    <Button variant={means.totp_enabled ? "default" : "filled"} onClick={() => setOpen(true)}>
      {means.totp_enabled ? "Turn off" : "Set up"}
    </Button>
  );
  return (
    <Section title="Second factor" text={TEXT} actions={isOpen ? undefined : toggle}>
      <Stack>
        <State means={means} />
        {isOpen && means.totp_enabled && (
          <ProofForm
            label="Turn off"
            color="red"
            text="The password alone is then enough to sign in."
            hasPassword={means.has_password}
            path={`/users/${userId}/totp`}
            method="DELETE"
            touches={[meansPath(userId), "users"]}
            doneMessage="Second factor turned off"
            onCancel={close}
            onDone={close}
          />
        )}
        {isOpen && !means.totp_enabled && (
          <TotpSetup
            userId={userId}
            means={means}
            onCancel={close}
            onDone={(next) => {
              close();
              setCodes(next);
            }}
          />
        )}
      </Stack>
      <RecoveryCodes codes={codes} onClose={() => setCodes(null)} />
    </Section>
  );
}

function State({ means }: Pick<MeansProps, "means">) {
  const { totp_enabled: isOn, recovery_codes_left: left, has_password: hasPassword } = means;
  const badge = (
    <Badge variant="light" color={isOn ? "teal" : "gray"} tt="none">
      {isOn ? "on" : "off"}
    </Badge>
  );
  return (
    <Stack gap={4}>
      <Group gap="xs">
        {badge}
        {isOn && (
          <Text size="sm">
            {left} of 10 recovery codes left
            {left <= 3 && ". For new ones, turn it off and set it up again."}
          </Text>
        )}
      </Group>
      {!hasPassword && (
        <HelpText>
          Single sign-on does not use it: your identity provider has its own second factor.
        </HelpText>
      )}
    </Stack>
  );
}
