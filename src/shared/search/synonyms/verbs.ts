/**
 * General synonym groups of verbs: actions on files, records, services and people. synonyms.ts explains the notation. No
 * line may name a server or a tool.
 */
export const VERBS = `
list enumerate show display view | get fetch retrieve read show obtain view | get return check | read open load
find search lookup query locate | discover explore browse find | create add make new | create generate build produce compose
insert add append put attach | define create register | delete remove drop destroy erase purge clear discard
uninstall remove | detach unlink disconnect | update edit modify change patch adjust alter revise | set configure assign | rename retitle
replace substitute overwrite | write save store persist record | remember store save | send post deliver | publish release | submit send
share send | notify alert | run execute perform | run start launch | start begin launch open initiate | stop terminate kill end halt
cancel abort stop | close end | pause suspend hold | resume continue unpause restore | restart reboot reset | reset restore revert
undo revert rollback | enable activate turn | disable deactivate turn | activate apply | upload import ingest | upload attach add
download fetch save | export download save | import load ingest | copy duplicate clone | move relocate transfer
merge combine join concatenate concat | split divide separate | compare diff difference | convert transform turn | translate convert
sync synchronize | validate verify check test | test try check | confirm verify | approve accept | reject decline deny refuse
block ban deny | unblock allow unban | allow permit grant | grant assign give add | revoke remove withdraw | invite add | join enter
leave exit quit | login signin authenticate logon | logout signout | authenticate authorize | connect link attach
navigate goto visit open browse | click press tap | type fill enter input | scroll swipe | wait sleep pause delay
capture screenshot snapshot | monitor watch track observe | track trace follow | analyze analyse examine inspect evaluate assess
inspect view examine | calculate compute math evaluate | count number total | sum total add | summarize summary summarise
explain describe | describe detail info | recommend suggest | reason think | rank rating ranking rate | sort order | filter where match
group aggregate | predict forecast | estimate calculate | plan schedule | book reserve reservation | buy purchase order | sell purchase
pay payment charge | refund reimburse | extract parse scrape | crawl scrape spider | detect recognize identify | recall retrieve search
draw sketch paint | render draw display | visualize visualise chart plot | play start | record save capture | mute silence
assign allocate | lock protect | unlock unprotect | encrypt cipher | compress zip | decompress unzip extract | install add
deploy release publish | scale resize | provision create | format style | highlight mark | checkout switch | commit record save
history log | tail follow | ping check | persist save write`;
