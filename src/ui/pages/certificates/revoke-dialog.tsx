// Asks why a certificate is to be revoked, and says what follows; has the gateway revoke it.
import { Button, Group, Modal, Select, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import type { Read } from "../../api/resources.ts";

interface Props {
  /** Null: nothing is asked. */
  readonly certificate: Read<"certificates"> | null;
  readonly onClose: () => void;
}

const reasons = [
  { value: "unspecified", label: "No particular reason" },
  { value: "key_compromise", label: "Somebody else may have the private key" },
  { value: "superseded", label: "Another one takes its place" },
  { value: "affiliation_changed", label: "The names belong to somebody else now" },
  { value: "cessation_of_operation", label: "It is not needed any more" },
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
          The authority tells everybody that it holds no more, and it is taken out of service. This
          cannot be undone.{" "}
          {certificate?.enabled === true &&
            "Another one with a new key is ordered at once; until it is there, a self-signed one is shown."}
        </Text>
        <Select
          label="Why"
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
