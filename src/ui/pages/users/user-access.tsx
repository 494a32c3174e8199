// The sign-in methods and sessions of a user, with the admin's actions for locked-out users.
import { Button, Group, Modal, PasswordInput, Stack, Text } from "@mantine/core";
import { useForm } from "@mantine/form";
import { modals } from "@mantine/modals";
import { useState } from "react";
import { Link } from "wouter";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { useMe, useResource } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { pagePath } from "../../page-path.ts";
import { ErrorPanel } from "../../parts/error-panel.tsx";
import { Can, Fact, Section } from "../../parts/page-layout.tsx";
import { fieldErrorOf } from "../account/field-error.ts";
import { passwordRule } from "../account/own-password.tsx";
import { SessionList } from "../account/session-list.tsx";

type User = Read<"users">;

export function UserAccess({ user: stored }: { readonly user: User }) {
  const { data: me } = useMe();
  // The form above keeps its initial values; this section is live.
  const user = useResource("users", stored.id).data?.value ?? stored;
  const isOneself = user.id === me?.user?.id;
  return (
    <Stack gap={0} maw={920} mt="md">
      <Section title="Sign-in" text={isOneself ? "This is you." : undefined}>
        <Means user={user} />
        <Group mt="md" gap="xs">
          {isOneself ? (
            <Button component={Link} href={pagePath("account")} variant="default">
              Change it under Your account
            </Button>
          ) : (
            <Can needs="admin">
              <Helps user={user} />
            </Can>
          )}
        </Group>
      </Section>
      <Section title="Sessions" text="Browser sessions of this user.">
        <SessionList userId={user.id} isOwn={isOneself} />
      </Section>
    </Stack>
  );
}

function Means({ user }: { readonly user: User }) {
  return (
    <Stack gap={6}>
      <Fact label="Password">{user.has_password ? "set" : "none"}</Fact>
      <Fact label="Second factor">{user.totp_enabled ? "on" : "off"}</Fact>
      <Fact label="Single sign-on">
        {user.sso_linked ? "linked to an account of the identity provider" : "not used yet"}
      </Fact>
    </Stack>
  );
}

function Helps({ user }: { readonly user: User }) {
  const [isOpen, setOpen] = useState(false);
  const connection = useConnection();
  const { mutate, isPending } = useChange({
    send: () => connection.send(`/users/${user.id}/totp`, { method: "DELETE" }),
    touches: ["users"],
    done: () => `Second factor of ${user.name} turned off`,
  });
  const ask = () =>
    modals.openConfirmModal({
      title: `Turn off the second factor of ${user.name}?`,
      children: (
        <Text size="sm">
          The password alone is then enough to sign in. Verify the identity of the user first:
          attackers ask for this.
        </Text>
      ),
      labels: { confirm: "Turn off", cancel: "Cancel" },
      confirmProps: { color: "red" },
      onConfirm: () => mutate(),
    });
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        {user.has_password ? "Reset the password" : "Set a password"}
      </Button>
      {user.totp_enabled && (
        <Button variant="default" loading={isPending} onClick={ask}>
          Turn off the second factor
        </Button>
      )}
      <Modal opened={isOpen} onClose={() => setOpen(false)} title={`Password of ${user.name}`}>
        {isOpen && <PasswordForm user={user} onClose={() => setOpen(false)} />}
      </Modal>
    </>
  );
}

interface PasswordFormProps {
  readonly user: User;
  readonly onClose: () => void;
}

function PasswordForm({ user, onClose }: PasswordFormProps) {
  const connection = useConnection();
  const [failure, setFailure] = useState<unknown>(null);
  const form = useForm({
    initialValues: { password: "" },
    validateInputOnBlur: true,
    validate: { password: passwordRule },
  });
  const change = useChange<unknown, object>({
    send: (body) => connection.send(`/users/${user.id}/password`, { method: "PUT", body }),
    touches: ["users", "auth/sessions"],
    done: () => `Password of ${user.name} changed`,
    showsErrors: true,
  });
  const submit = form.onSubmit(async (values) => {
    setFailure(null);
    try {
      await change.mutateAsync(values);
      onClose();
    } catch (error) {
      const errors = fieldErrorOf(error, values);
      if (errors === null) setFailure(error);
      else form.setErrors(errors);
    }
  });
  return (
    <form onSubmit={submit} noValidate aria-label="Password">
      <Stack>
        <PasswordInput
          label="New password"
          description="At least 10 characters. Ends every session of this user."
          autoComplete="new-password"
          required
          data-autofocus
          {...form.getInputProps("password")}
        />
        {failure !== null && <ErrorPanel error={failure} title="Not changed" />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={change.isPending}>
            Set the password
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
