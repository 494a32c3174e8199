// Shows a secret once, with a copy button; stores nothing.
import { Alert, Button, Code, CopyButton, Group, Modal, Stack, Text } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";

/** A value with a button that copies it. */
export function CopyableValue({
  value,
  label,
}: {
  readonly value: string;
  readonly label: string;
}) {
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start">
      <Code
        block
        style={{ flex: 1, minWidth: 0, overflowWrap: "anywhere", whiteSpace: "pre-wrap" }}
      >
        {value}
      </Code>
      <CopyButton value={value}>
        {({ copied, copy }) => (
          <Button
            variant="default"
            size="xs"
            onClick={copy}
            aria-label={copied ? `${label} copied` : `Copy ${label}`}
            leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}
          >
            {copied ? "Copied" : "Copy"}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}

interface SecretOnceProps {
  /** `API key`, `token`. */
  readonly label: string;
  /** Null: nothing is shown. */
  readonly value: string | null;
  readonly onClose: () => void;
}

/** A dialog that only its button closes, because the value is not shown again. */
export function SecretOnce({ label, value, onClose }: SecretOnceProps) {
  return (
    <Modal
      opened={value !== null}
      onClose={onClose}
      title={`Your ${label}`}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
      size="lg"
    >
      <Stack>
        <Alert color="yellow">
          <Text size="sm">Copy it now. It is never shown again.</Text>
        </Alert>
        <CopyableValue value={value ?? ""} label={label} />
        <Group justify="flex-end">
          <Button onClick={onClose}>I have copied it</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
