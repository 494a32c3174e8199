// Rotates the secret of a credential, with an overlap for the current one; stores no secret.
import { Button, Group, Modal, Radio, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../../api/changes.tsx";
import { useConnection } from "../../api/connection-context.ts";
import { type Credential, DAY, HOUR, kindOf, titleOf } from "./credential-kinds.ts";

const choices = [
  { value: String(DAY), label: "For a day", text: "Time to deploy the new one" },
  { value: String(HOUR), label: "For an hour", text: "" },
  { value: String(7 * DAY), label: "For a week", text: "" },
  {
    value: "0",
    label: "No overlap",
    text: "Clients that use the current one are rejected at once",
  },
];

interface Props {
  readonly credential: Credential;
  readonly onClose: () => void;
  readonly onDone: (rotated: Credential) => void;
}

export function RotateDialog({ credential, onClose, onDone }: Props) {
  const connection = useConnection();
  const [overlap, setOverlap] = useState(String(DAY));
  const { mutateAsync, isPending } = useChange<Credential>({
    send: () =>
      connection.send(`/credentials/${credential.id}/rotate`, {
        method: "POST",
        body: { overlap_seconds: Number(overlap) },
      }),
    touches: ["credentials"],
    done: (rotated) => `Credential ${titleOf(rotated)} rotated`,
  });
  const rotate = async () => {
    // The failure was notified.
    const response = await mutateAsync().catch(() => null);
    if (response !== null) onDone(response.value);
  };
  return (
    <Modal opened onClose={onClose} title={`New ${kindOf(credential.type).secretWord}`}>
      <Stack>
        <Text size="sm">
          The gateway generates a new one for {titleOf(credential)} and shows it once.
        </Text>
        <Radio.Group label="Overlap for the current one" value={overlap} onChange={setOverlap}>
          <Stack gap="xs" mt="xs">
            {choices.map(({ value, label, text }) => (
              <Radio key={value} value={value} label={label} description={text} />
            ))}
          </Stack>
        </Radio.Group>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button loading={isPending} onClick={() => void rotate()}>
            Rotate
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
