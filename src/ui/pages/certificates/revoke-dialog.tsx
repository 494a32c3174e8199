// Confirms the revocation of a certificate: reason and consequences.
import { Button, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Read } from "../../api/resources.ts";

interface Props {
  /** Null: the dialog is closed. */
  readonly certificate: Read<"certificates"> | null;
  readonly onClose: () => void;
}

const reasons = [
  { value: "unspecified", label: "Unspecified" },
  { value: "key_compromise", label: "Key compromise" },
  { value: "superseded", label: "Superseded" },
  { value: "affiliation_changed", label: "Affiliation changed" },
  { value: "cessation_of_operation", label: "Cessation of operation" },
];

export function RevokeDialog({ certificate, onClose }: Props) {
  const [reason, setReason] = useState("unspecified");
  const connection = useConnection();
  const { mutate, isPending } = useChange<Read<"certificates">>({
    send: () =>
      connection.send(`/certificates/${certificate?.id}/revoke`, {
        method: "POST",
        body: { reason },
      }),
    touches: ["certificates"],
    done: () => `Certificate ${certificate?.name} revoked`,
  });
  return (
    <Modal
      opened={certificate !== null}
      onClose={onClose}
      title={`Revoke certificate ${certificate?.name}?`}
    >
      <Stack>
        <Text size="sm">
          The CA publishes the revocation, and the gateway stops serving the certificate. This
          cannot be undone.{" "}
          {certificate?.enabled === true &&
            "The gateway requests a new one with a new key and serves a self-signed one until then."}
        </Text>
        <Select
          label="Reason"
          data={reasons}
          value={reason}
          allowDeselect={false}
          onChange={(value) => setReason(value ?? "unspecified")}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Cancel
          </Button>
          <Button
            color="red"
            loading={isPending}
            onClick={() => mutate(undefined, { onSuccess: onClose })}
          >
            Revoke
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
