CREATE TABLE `discovery_claims` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`source` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`holder` text NOT NULL,
	`content` text NOT NULL,
	`gone_at` text
);

CREATE UNIQUE INDEX `discovery_claims_key` ON `discovery_claims` (`source`,`kind`,`name`);