/**
 * Owns the general synonym rules and their notation. The rules are words of everyday software, office work, business and
 * data. No rule may name a server or a tool; a few name file types or well-known kinds of things ("docx", "bitcoin").
 * `a b c`    each word may stand for each other one
 * `a b > c`  a query for a or b also finds c, but not the other way round: the special word finds the general one
 * `|` or the end of a line separates rules. weights.ts says what a match by a rule earns. The index stores
 * the relations that its catalog needs, so main must never load these lists. To add a rule: a line in one of the lists.
 */
/** Spellings, abbreviations and file types of the same thing. */
const SAME = `
repository repo | database db | directory folder dir | document doc | documentation doc docs | configuration config
organization organisation org | application app | specification spec | parameter param | argument arg | information info | environment env
development dev | production prod | authentication auth | administrator admin | kubernetes k8s | image picture photo | delete remove
summarize summarise | visualize visualise | analyze analyse | optimize optimise | authorize authorise | calculate compute | find search
fetch retrieve get | create make | edit modify | update modify | pr > pull request | mr > merge request | docx > word | xlsx > excel
pptx > powerpoint | powerpoint ppt pptx | email mail | message msg | statistic stats stat | dependency dep deps | reference ref
command cmd | temporary temp | maximum max | minimum min | average avg | number num | javascript js | typescript ts | python py
markdown md | vm > virtual machine | ip > address | url link | website site | webpage page | movie film | flight airline | stock equity
cryptocurrency crypto | bitcoin btc | ethereum eth | employee staff worker | customer client | company firm | color colour
license licence | catalog catalogue | cancel abort | ticket issue | invoice bill | meeting appointment | dm > message | sms > message text
screenshot capture | show > read | open go > navigate visit | remember > memory knowledge note`;

export type SynonymKind = "same" | "noun" | "translation";
type SynonymRule = {
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly kind: SynonymKind;
};

export function synonymRules(): SynonymRule[] {
  return [...parse(SAME, "same"), ...parse(NOUNS, "noun"), ...translations()];
}

function parse(rules: string, kind: SynonymKind): SynonymRule[] {
  return rules
    .trim()
    .split(/[|\n]/u)
    .map((rule) => {
      const [left = "", right = left] = rule.split(">");
      return { from: words(left), to: words(right), kind };
    });
}

/** Rules of the translations: a foreign word and its English words stand for each other, but not the English words alone. */
function translations(): SynonymRule[] {
  return parse(TRANSLATIONS, "translation").flatMap(({ from: [word = "", ...english], kind }) => [
    { from: [word], to: english, kind },
    { from: english, to: [word], kind },
  ]);
}

function words(text: string): string[] {
  return text.trim().split(/\s+/u);
}

/**
 * General synonym groups of nouns: software, data, office work, business, finance, travel, media. synonyms.ts explains
 * the notation. No line may name a server or a tool.
 */
const NOUNS = `
info information detail metadata property | about > info | data information | attribute property field | parameter argument option
config configuration setting | preference setting | option choice | status state health | value amount | content text body | name title
description summary | id identifier | key identifier | list collection | item entry record | row record | record document
column field | table sheet | collection table | schema structure definition | type kind category | category classification | tag label
template layout theme | error failure exception problem | issue ticket bug | problem issue | bug defect issue
task todo job | task item | job run execution | workflow pipeline automation | build job | project workspace
file document | documentation doc guide reference | guide tutorial documentation
path location | screenshot image
video clip movie | song music track | audio sound voice | speech voice audio | podcast audio
spreadsheet excel workbook sheet | worksheet sheet | presentation slide powerpoint deck | slide page | paragraph text
docx > word document | xlsx xls csv > excel spreadsheet sheet | pptx ppt > powerpoint presentation | pdf > document
txt md > file text | json yaml > file | readme > documentation | png jpg jpeg gif > image
mp3 wav > audio | mp4 > video | html > page web | website site web | web internet online | webpage page website
url link uri address | website > url | domain hostname | browser web | wiki > documentation | article page post
paper article publication study | paper preprint | literature paper article | research study | novel book | author writer
citation reference | news headline article | trend trending popular hot | popular top trending | ranking rank leaderboard
rank top | story post | topic subject | comment reply | review comment feedback | discussion conversation thread | message chat dm
conversation chat message | channel room | inbox mail email | mailbox email | newsletter email
contact people | user account member | person people individual | person user | profile user | group team
organization organisation org company | company business firm corporation | customer client account
applicant application candidate | interview meeting
hiring recruiting recruitment | vacancy job position | manager supervisor | department team | salary compensation pay
leave absence timeoff pto vacation | holiday vacation | shift schedule | course training lesson | prospect lead
deal opportunity | sale deal | campaign marketing | permission access right | role permission | rule policy
secret credential | password credential | credential login | token key | certificate cert | apikey key | identity user
mfa twofactor factor | sso login | device machine computer | endpoint device | server host machine
instance machine | cluster node | edge relation link | relation relationship link
entity node object | graph network | memory knowledge | note memo | note memory | container docker | pod container
dataset data table | sql query
query search | statement query | backup snapshot | storage disk | volume disk | bucket container | blob object file
queue message | event log | log trace | log history | metric measure
stats statistic metric | report summary | dashboard report | alert alarm notification | incident alert | outage incident | threat attack
vulnerability security cve | malware virus | firewall filter | traffic network | ip address | dns domain
subnet network | vpn network | location place | address location | place poi | restaurant food place | nearby around near
direction navigation route | map location | distance route | coordinate latitude longitude | geocode coordinate address
city location | hotel accommodation lodging | train railway
ticket pass | trip travel journey | weather forecast | temperature weather | time date clock | date time day
today now current | latest newest recent current | last latest previous | timezone time
calendar event schedule | meeting event appointment | reminder alarm | stock share equity | stock ticker
ticker symbol | price quote cost | price rate | quotation quote | cost price billing | fee price charge | currency money forex
exchange rate | gold silver platinum > metal | bitcoin btc ethereum eth > crypto cryptocurrency coin
crypto cryptocurrency coin | token coin | dollar euro yen usd eur > currency exchange | finance financial | market stock
portfolio holding position | dividend payout | earning income | income revenue profit | revenue sale | balance fund
payment transaction charge | plan subscription
discount coupon promotion | coupon promo | product item | goods product | shop store | order purchase | inventory stock
refund return | tax vat | repo project | branch ref | commit change revision | revision version commit
pull request | pr > pullrequest | diff change | code source | snippet code | function method
class type | package dependency library | module package | framework library
component widget element | icon symbol | button element | element selector | ui interface | endpoint api
response answer | webhook callback | sdk library | command cli | terminal shell | shell command | script program
process program | program application | plugin extension | function lambda | variable parameter | ci build | release version
changelog release | maintainer author | test case | model llm
llm > model ai | ai > model | chatbot bot agent | agent assistant | prompt instruction | completion response
vector embedding | semantic vector | chart graph plot diagram | pie bar line > chart | diagram flowchart | timeline history
number numeric | math calculate | equation formula expression
expression calculate | goal objective | progress status | checklist list task
priority importance | due deadline | player user
match game | score rating | recipe meal food | drug medicine medication | disease condition | gene variant | trial study
clinical medical | patient person | school education | student learner`;

/**
 * Words of everyday software in Chinese, Japanese and Korean with their English counterparts, so that an English query
 * finds a tool described in Chinese and the other way round. All words have two characters, since words.ts cuts such
 * text into pairs. The end of a line or `|` ends an entry. No line may name a product, a server or a tool.
 */
const TRANSLATIONS = `
搜索 search | 搜寻 search | 查找 find | 查询 query search | 获取 get | 读取 read | 写入 write | 创建 create | 新建 create | 添加 add | 删除 delete
移除 remove | 更新 update | 修改 modify edit | 编辑 edit | 列出 list | 列表 list | 发送 send | 发布 publish | 上传 upload | 下载 download
打开 open | 关闭 close | 运行 run | 执行 execute | 启动 start | 停止 stop | 生成 generate | 转换 convert | 翻译 translate | 计算 calculate
分析 analysis analyze | 总结 summarize | 摘要 summary | 推荐 recommend recommendation | 比较 compare | 统计 statistics | 预测 forecast
预报 forecast | 登录 login | 支付 payment | 订单 order | 购买 buy purchase | 购物 shopping | 优惠 discount | 商品 product | 产品 product
价格 price | 股票 stock | 基金 fund | 汇率 exchange rate | 货币 currency | 黄金 gold | 财经 finance financial | 金融 finance financial
投资 investment | 商业 business | 创业 startup | 公司 company | 企业 company | 客户 customer | 用户 user | 员工 employee | 团队 team | 项目 project
任务 task | 日历 calendar | 日期 date | 时间 time | 会议 meeting | 邮件 email | 消息 message | 通知 notification | 文件 file | 文档 document
目录 directory | 表格 table | 数据 data | 图片 image | 图像 image | 照片 photo | 视频 video | 音乐 music | 音频 audio | 语音 voice | 图表 chart
地图 map | 位置 location | 地址 address | 路线 route | 城市 city | 天气 weather | 酒店 hotel | 航班 flight | 火车 train | 列车 train | 车票 train ticket
车站 station | 旅行 travel | 新闻 news | 资讯 news | 热榜 trending hot | 热门 popular hot | 热搜 trending hot | 排行 ranking rank
榜单 ranking rank | 趋势 trend | 话题 topic | 文章 article | 论文 paper | 书籍 book | 图书 book | 读书 reading book | 阅读 reading | 小说 novel
电影 movie | 电视 tv | 游戏 game gaming | 体育 sport | 科技 technology tech | 技术 technology | 数码 electronics | 电子 electronics
消费 consumer shopping | 社区 community | 评论 comment | 网页 webpage page | 网站 website | 链接 link | 浏览 browse | 代码 code | 仓库 repository
分支 branch | 提交 commit | 问题 issue problem | 版本 version | 服务 service | 模型 model | 知识 knowledge | 健康 health | 医疗 medical
食谱 recipe | 菜谱 recipe | 农历 lunar calendar | 内容 content | 信息 information | 详情 detail | 历史 history | 最新 latest | 今日 today | 实时 realtime
検索 search | 取得 get | 作成 create | 追加 add | 削除 delete | 変更 change | 編集 edit | 一覧 list | 送信 send | 保存 save | 実行 execute | 開始 start
翻訳 translate | 計算 calculate | 要約 summarize | 推薦 recommend | 価格 price | 株価 stock price | 為替 exchange rate | 会社 company
予定 calendar event | 予約 reservation book | 画像 image | 写真 photo | 動画 video | 音楽 music | 音声 voice | 地図 map | 住所 address | 経路 route
天気 weather | 予報 forecast | 電車 train | 記事 article | 論文 paper | 書籍 book | 映画 movie | 翻訳 translation | 文書 document | 情報 information
검색 search | 조회 query get | 생성 create | 추가 add | 삭제 delete | 수정 edit update | 변경 change | 목록 list | 전송 send | 저장 save | 실행 run
시작 start | 중지 stop | 번역 translate | 계산 calculate | 분석 analyze | 요약 summarize | 추천 recommend | 가격 price | 주식 stock | 환율 exchange rate
회사 company | 일정 calendar event | 회의 meeting | 예약 reservation book | 메일 email | 파일 file | 문서 document | 사진 photo | 영상 video | 음악 music
지도 map | 주소 address | 경로 route path | 날씨 weather | 예보 forecast | 기차 train | 뉴스 news | 기사 article | 논문 paper | 영화 movie | 게임 game`;
