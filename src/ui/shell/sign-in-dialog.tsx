// Asks to sign in again over whatever page is open, so that nothing typed there is lost; knows no page.
import { Modal, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { useConnection } from "../api/connection-context.ts";
import { queryKeys } from "../api/queries.ts";
import type { Schemas } from "../api/resources.ts";
import { SignInForm } from "./sign-in-form.tsx";

/** Opens when a request was answered with 401; signing in sends it again. */
export function SignInDialog() {
  const { gate } = useConnection();
  const client = useQueryClient();
  const isClosed = useSyncExternalStore(gate.subscribe, gate.isClosed);
  const me = client.getQueryData<Schemas["Me"] | null>(queryKeys.me);
  return (
    <Modal
      opened={isClosed}
      onClose={() => {}}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title="Your session has ended"
      zIndex={1000}
    >
      <Text size="sm" c="dimmed" mb="md">
        Sign in to go on where you were. What you have typed is still there.
      </Text>
      <SignInForm
        email={me?.user?.email ?? ""}
        onSignedIn={(next) => {
          client.setQueryData(queryKeys.me, next);
          gate.open();
        }}
      />
    </Modal>
  );
}
