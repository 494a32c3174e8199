// Offers to make an account at Let's Encrypt on the spot, where a certificate is wanted and nobody can be asked for one.
import { Anchor, Button, Checkbox, Group, Paper, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { useSave } from "../../api/changes.tsx";
import { toMessage } from "../../api/error.ts";
import { pagePath } from "../../page-path.ts";

/** Two fields and a button; it goes away by itself when there is an account. */
export function AccountOffer() {
  const [email, setEmail] = useState("");
  const [isAgreed, setAgreed] = useState(false);
  const { mutate, isPending, error } = useSave("acme/accounts");
  const create = () =>
    mutate({
      id: null,
      body: {
        ...{ name: "letsencrypt", terms_agreed: true },
        email: email.trim() === "" ? null : email.trim(),
      },
    });
  return (
    <Paper withBorder p="md" component="section" aria-label="Account at an authority">
      <Stack gap="sm">
        <Text fw={600}>No account at a certificate authority yet</Text>
        <Text size="sm">
          Let's Encrypt gives certificates for public names away for free. Without an account the
          name is served with a self-signed certificate, and the real one is ordered as soon as
          there is one.
        </Text>
        <TextInput
          label="Your e-mail address"
          description="Optional: the authority writes to it when something is wrong"
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
            Another authority
          </Anchor>
        </Group>
      </Stack>
    </Paper>
  );
}
