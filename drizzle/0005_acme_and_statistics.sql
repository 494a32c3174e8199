CREATE TABLE `acme_accounts` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text NOT NULL
);

CREATE UNIQUE INDEX `acme_accounts_id_unique` ON `acme_accounts` (`id`);
CREATE UNIQUE INDEX `acme_accounts_name_unique` ON `acme_accounts` (`name`);
CREATE TABLE `acme_states` (
	`certificate_id` text PRIMARY KEY NOT NULL,
	`document` text NOT NULL
);

CREATE TABLE `applications` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text NOT NULL
);

CREATE UNIQUE INDEX `applications_id_unique` ON `applications` (`id`);
CREATE UNIQUE INDEX `applications_name_unique` ON `applications` (`name`);
CREATE TABLE `dns_providers` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text NOT NULL
);

CREATE UNIQUE INDEX `dns_providers_id_unique` ON `dns_providers` (`id`);
CREATE UNIQUE INDEX `dns_providers_name_unique` ON `dns_providers` (`name`);
CREATE TABLE `traffic_rollups` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`span` integer NOT NULL,
	`kind` text NOT NULL,
	`object_id` text NOT NULL,
	`document` text NOT NULL
);

CREATE UNIQUE INDEX `traffic_rollups_key` ON `traffic_rollups` (`span`,`at`,`kind`,`object_id`);