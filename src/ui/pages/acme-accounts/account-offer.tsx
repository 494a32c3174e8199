// Offers to create a Let's Encrypt account on a page that needs one for a certificate.
import { Anchor, Button, Checkbox, Group, Paper, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useSave } from "../../api/changes.tsx";
import { toMessage } from "../../api/error.ts";
import { pagePath } from "../../page-path.ts";

/** Two fields and a button; hidden as soon as an account exists. */
export function AccountOffer() {
  const [email, setEmail] = useState("");
  const [isAgreed, setAgreed] = useState(false);
  const { mutate, isPending, error } = useSave("acme/accounts");
  const create = () =>
    mutate({
      id: null,
      body: {
        name: "letsencrypt",
        terms_agreed: true,
        email: email.trim() === "" ? null : email.trim(),
      },
    });
  return (
    <Paper withBorder p="md" component="section" aria-label="ACME account">
      <Stack gap="sm">
        <Text fw={600}>No ACME account yet</Text>
        <Text size="sm">
          Let's Encrypt issues free certificates for public names. Without an account, the gateway
          serves a self-signed certificate until an account exists.
        </Text>
        <TextInput
          label="Your e-mail address"
          description="Optional: contact address for the CA"
          type="email"
          placeholder="you@example.com"
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
          error={error === null ? null : toMessage(error)}
        />
        <Checkbox
          label="I agree to the terms of service of Let's Encrypt"
          checked={isAgreed}
          onChange={(event) => setAgreed(event.currentTarget.checked)}
        />
        <Group gap="sm">
          <Button size="xs" disabled={!isAgreed} loading={isPending} onClick={create}>
            Create the account
          </Button>
          <Anchor component={Link} href={pagePath("acme-accounts", "new")} size="sm">
            Another CA
          </Anchor>
        </Group>
      </Stack>
    </Paper>
  );
}
